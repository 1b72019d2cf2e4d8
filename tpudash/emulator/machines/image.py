"""The stand-in for a TPU VM's disk image: which Python a node finds, and its environment."""

from __future__ import annotations

import os
import shlex
import site
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INHERITED = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_ABSENT = ("gsutil",)
"""Programs of this machine that know no local endpoint and would speak to the real cloud."""

_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def prepare_image(folder: Path) -> Path:
    """Create a folder whose `python3` is the emulator's own interpreter, and return it.

    A launcher and not a link: through a link, an interpreter of a virtual environment would not
    find its packages.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    python = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'
    absent = '#!/bin/sh\necho "$0: not in this image" >&2\nexit 127\n'
    for name, text in (("python3", python), ("python", python), *((it, absent) for it in _ABSENT)):
        program = programs / name
        if not program.exists() or program.read_text() != text:
            temporary = programs / f".{name}.new"
            temporary.write_text(text)
            temporary.chmod(0o755)
            temporary.replace(program)
    return programs


def node_environment(programs: Path, directory: Path) -> dict[str, str]:
    """Return a worker's environment: nothing of the user's session but language and search path."""
    path = os.environ.get("PATH", _FALLBACK_PATH)
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment |= {
        "PATH": f"{programs}{os.pathsep}{path}",
        "HOME": str(directory / "home"),
        "TMPDIR": str(directory / "tmp"),
        "TPUDASH_NODE_DIR": str(directory),
        "PYTHONUNBUFFERED": "1",
    }
    if site.ENABLE_USER_SITE:
        environment["PYTHONUSERBASE"] = site.getuserbase()
    return environment
