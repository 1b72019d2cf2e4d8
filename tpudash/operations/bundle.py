"""The trainer's code as an archive: the same bytes for the same files, wherever it is made.

The package is located and read as data; it is never imported here.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = "trainer"
STARTUP_SCRIPT: Final = "startup.sh"
_LEFT_OUT_FOLDERS: Final = frozenset({"__pycache__", "tests", "test"})
_LEFT_OUT_ENDINGS: Final = frozenset({".pyc", ".pyo", ".orig", ".swp"})


@dataclass(frozen=True, slots=True)
class TrainerBundle:
    """The archive, and the startup script that unpacks it on a node.

    Attributes:
        data: A gzipped tar archive that holds the folder `trainer/`.
        sha256: Of `data`, in hexadecimal digits; it names the file in the bucket.
        startup_script: Text of the node metadata key `startup-script`.
    """

    data: bytes
    sha256: str
    startup_script: str


def make_bundle(folder: Path | None = None) -> TrainerBundle:
    """Pack the installed trainer.

    Args:
        folder: The package's folder; None finds the installed one.

    Raises:
        ConfigurationError: It is not installed, or incomplete.
    """
    root = folder or _installed_trainer()
    try:
        script = (root / STARTUP_SCRIPT).read_text("utf-8")
        data = _packed(root)
    except OSError as error:
        raise ConfigurationError(
            "the bundled trainer can't be read",
            detail=f"{error.filename}: {error.strerror}",
            hint="install tpudash again",
        ) from error
    return TrainerBundle(data, hashlib.sha256(data).hexdigest(), script)


def _installed_trainer() -> Path:
    # Looking for a top-level package reads its place and runs none of its code.
    found = find_spec(PACKAGE)
    places = found.submodule_search_locations if found else None
    for place in places or ():
        if (Path(place) / STARTUP_SCRIPT).is_file():
            return Path(place)
    raise ConfigurationError(
        "the bundled trainer is not installed",
        detail=f"there is no package {PACKAGE!r} with a {STARTUP_SCRIPT}",
        hint="install tpudash again",
    )


def _packed(root: Path) -> bytes:
    buffer = io.BytesIO()
    # No name and no time of our own may get into the header: the digest names the content.
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in _files(root):
            info = tarfile.TarInfo(f"{PACKAGE}/{path.relative_to(root).as_posix()}")
            content = path.read_bytes()
            info.size = len(content)
            info.mode = 0o755 if path.suffix == ".sh" else 0o644
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _files(root: Path) -> Iterator[Path]:
    found = (path for path in root.rglob("*") if path.is_file())
    for path in sorted(found, key=lambda one: one.relative_to(root).as_posix()):
        parts = path.relative_to(root).parts
        if _LEFT_OUT_FOLDERS.intersection(parts) or any(part.startswith(".") for part in parts):
            continue
        if path.suffix not in _LEFT_OUT_ENDINGS:
            yield path
