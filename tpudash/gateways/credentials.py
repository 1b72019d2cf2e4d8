"""Application Default Credentials: found off the event loop, with one clear line when missing.

Source: https://cloud.google.com/docs/authentication/application-default-credentials
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.sign_in_errors import KEY_VARIABLE, SignInKind, explained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.errors import TpudashError

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"

FilesAsNow = tuple[tuple[str, int, int], ...]

PRODUCT_NAME: Final = "/sys/class/dmi/id/product_name"
"""Where Linux says whose machine this is; on Compute Engine it begins with Google."""
_ON_GOOGLE: Final = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "K_SERVICE", "GAE_RUNTIME")


@dataclass(frozen=True, slots=True)
class SignIn:
    """Credentials and what they say of themselves.

    Attributes:
        credentials: A `google.auth.credentials.Credentials`.
        project: The project that the credentials came with, or None.
        account: Who is signed in, or None if the credentials do not say.
        kind: How the user came by them, which decides what renews them.
        files: The files that they may have come from, as they were.
    """

    credentials: Any
    project: str | None
    account: str | None
    kind: SignInKind = SignInKind.UNKNOWN
    files: FilesAsNow | None = None

    def scoped(self, scopes: Sequence[str]) -> Any:
        """Return the credentials narrowed to some OAuth scopes, where their kind can be."""
        from google.auth.credentials import Scoped

        if isinstance(self.credentials, Scoped):
            return self.credentials.with_scopes(list(scopes))  # type: ignore[no-untyped-call]
        return self.credentials


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


def find_sign_in(*, quota_project: str | None, impersonate: str | None) -> SignIn:
    """Find the credentials of this machine and user; blocks on files and the metadata server.

    Raises:
        NotAllowedError: There are none, or they can't be used; the hint says which command helps.
    """
    import google.auth
    from google.auth import exceptions

    files = credential_files()
    with warnings.catch_warnings():
        # "No quota project" would be printed over the screen; its refusals are classified instead.
        warnings.simplefilter("ignore")
        try:
            credentials, project = google.auth.default(
                scopes=[CLOUD_PLATFORM], quota_project_id=quota_project
            )
            if impersonate:
                credentials = _impersonated(credentials, impersonate, quota_project)
            # On Compute Engine this asks the metadata server, which must not happen on the loop.
            _ = credentials.universe_domain
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            raise not_usable(error) from error
    kind = kind_of(credentials)
    return SignIn(credentials, project, impersonate or _account_of(credentials), kind, files)


def kind_of(credentials: Any) -> SignInKind:
    """Return how somebody came by credentials."""
    module, name = type(credentials).__module__, type(credentials).__name__
    if module == "google.oauth2.credentials":
        return SignInKind.USER
    if module == "google.oauth2.service_account":
        return SignInKind.KEY
    if module.startswith("google.auth.compute_engine"):
        return SignInKind.METADATA_SERVER
    if module == "google.auth.impersonated_credentials":
        return SignInKind.IMPERSONATED
    return SignInKind.EXTERNAL if "external" in f"{module}.{name}" else SignInKind.UNKNOWN


def _impersonated(source: Any, account: str, quota_project: str | None) -> Any:
    from google.auth import impersonated_credentials

    make: Any = impersonated_credentials.Credentials
    return make(
        source_credentials=source,
        target_principal=account,
        target_scopes=[CLOUD_PLATFORM],
        quota_project_id=quota_project,
    )


def _account_of(credentials: Any) -> str | None:
    for attribute in ("service_account_email", "account"):
        value = getattr(credentials, attribute, None)
        if isinstance(value, str) and value and value != "default":
            return value
    return None


def not_usable(error: Exception, sign_in: SignIn | None = None) -> TpudashError:
    """Return what to tell a user whose credentials could not be found or renewed."""
    kind = sign_in.kind if sign_in else SignInKind.UNKNOWN
    return explained(error, kind, sign_in.account if sign_in else None)
