"""A bucket's stand-in: a folder on this machine, whose files are replaced as wholes.

A run's files lie at `<bucket>/tpudash/runs/<run>/...`, so the bucket of a path is what stands
before that; it must exist, and everything below is made when it is needed.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tpudash.errors import NotAllowedError, NotFoundError, OperationFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSIDE: Final = "tpudash"
_PART_PREFIX: Final = ".tpudash-part-"


def exists(path: Path) -> bool:
    """Whether a folder or file exists."""
    with _own_words("look at", path):
        return path.exists()


def read(path: Path) -> bytes | None:
    """Return a file's content, or None when it does not exist."""
    with _own_words("read", path):
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None


def write(path: Path, data: bytes, *, only_if_absent: bool) -> bool:
    """Write a file so that readers see the old content or the new, and a crash leaves one."""
    _require_bucket(path, path.parent)
    with _own_words("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_PART_PREFIX, dir=path.parent)
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            if not only_if_absent:
                part.replace(path)
            elif not _link(part, path):
                return False
            _sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)
    return True


def rename(path: Path, new_path: Path) -> None:
    """Move a file, replacing what is there."""
    with _own_words("move", path):
        new_path.parent.mkdir(parents=True, exist_ok=True)
        path.replace(new_path)
        _sync_folder(new_path.parent)


def list_folder(path: Path) -> tuple[str, ...]:
    """List what lies directly in a folder, by name; nothing if there is no such folder."""
    with _own_words("list", path):
        try:
            found = sorted(entry for entry in path.iterdir() if not _is_part(entry))
        except (FileNotFoundError, NotADirectoryError):
            _require_bucket(path, path)
            return ()
    return tuple(str(entry) for entry in found)


def _link(part: Path, path: Path) -> bool:
    """Give a finished file its name unless the name is taken; False if it is."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    return True


def _is_part(path: Path) -> bool:
    return path.name.startswith(_PART_PREFIX)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_bucket(path: Path, otherwise: Path) -> None:
    """Refuse to make a bucket by the way: a mistyped folder would silently take the run's files.

    For a path that is not of a run, it is `otherwise` that has to exist.

    Raises:
        NotFoundError: The folder that stands for the bucket does not exist.
    """
    bucket = _bucket_of(path) or otherwise
    if not bucket.is_dir():
        raise NotFoundError(
            f"the bucket {bucket} does not exist", hint=f"make it with: mkdir -p {bucket}"
        )


def _bucket_of(path: Path) -> Path | None:
    parts = path.parts
    for index in range(len(parts) - 1, 0, -1):
        if parts[index] == _INSIDE and parts[index + 1 : index + 2] == ("runs",):
            return Path(*parts[:index])
    return None


@contextmanager
def _own_words(verb: str, path: Path) -> Iterator[None]:
    """Turn what the system says into our errors."""
    try:
        yield
    except PermissionError as error:
        raise NotAllowedError(
            f"not allowed to {verb} {path}", detail=error.strerror or "", hint=f"ls -ld {path}"
        ) from error
    except FileNotFoundError as error:
        raise NotFoundError(f"no such file: {path}", detail=error.strerror or "") from error
    except OSError as error:
        raise OperationFailedError(
            f"could not {verb} {path}", detail=error.strerror or str(error)
        ) from error
