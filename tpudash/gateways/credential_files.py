"""What this machine has to sign in with, by looking at no more than files and the environment.

Loads no library: the console asks before its first frame.
Source: https://cloud.google.com/docs/authentication/application-default-credentials
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

FilesAsNow = tuple[tuple[str, int, int], ...]

KEY_VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
PRODUCT_NAME: Final = "/sys/class/dmi/id/product_name"
"""Where Linux says whose machine this is; on Compute Engine it begins with Google."""
_ON_GOOGLE: Final = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "K_SERVICE", "GAE_RUNTIME")


def credential_files() -> FilesAsNow:
    """Return the files that credentials come from, each with what changes when it is replaced."""
    found = []
    for path in (os.environ.get(KEY_VARIABLE), _well_known_file()):
        if not path:
            continue
        try:
            status = Path(path).stat()
        except OSError:
            continue
        found.append((path, status.st_mtime_ns, status.st_size))
    return tuple(found)


def could_sign_in() -> bool:
    """Whether this machine has anything to sign in with; asks no network and loads no library.

    True also for what turns out not to work, such as a key file that is gone: whoever named one
    means Google Cloud. Source: the order in which google.auth.default looks, and
    google.auth.compute_engine._metadata.detect_gce_residency_linux.
    """
    if os.environ.get(KEY_VARIABLE) or credential_files():
        return True
    if any(os.environ.get(name) for name in _ON_GOOGLE):
        return True
    try:
        product = Path(PRODUCT_NAME).read_text("utf-8", "replace")
    except OSError:
        return False
    return product.strip().startswith("Google")


def _well_known_file() -> str:
    """Return where `gcloud auth application-default login` writes.

    Source: google.auth._cloud_sdk.get_application_default_credentials_path
    """
    folder = os.environ.get("CLOUDSDK_CONFIG")
    if not folder:
        home = os.environ.get("APPDATA") if os.name == "nt" else None
        folder = str(Path(home) / "gcloud") if home else str(Path("~/.config/gcloud").expanduser())
    return str(Path(folder) / "application_default_credentials.json")
