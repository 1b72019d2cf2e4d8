"""The run's folder as the agent sees it: small files replaced as a whole, local or on gs://."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any, Protocol

_GCS_TIMEOUT_S = 10.0


class FolderError(Exception):
    """A file of the run could not be read or written."""


class RunFolder(Protocol):
    """Access to the files of a run, by name relative to its folder."""

    write_interval_s: float
    """How often a record may be rewritten here."""

    def read(self, name: str) -> bytes | None:
        """Return the content, or None if there is no such file. Raises `FolderError`."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole. Raises `FolderError`."""
        ...

    def set_aside(self, name: str) -> str:
        """Rename a file to the first free `<name>.corrupt-<n>`. Raises `FolderError`."""
        ...


def open_folder(url: str) -> RunFolder:
    """Return the folder of a gs:// URL or an absolute path.

    Raises:
        FolderError: the URL is of neither kind.
    """
    if url.startswith("gs://"):
        return GcsFolder(url)
    if url.startswith("/"):
        return LocalFolder(Path(url))
    raise FolderError(f"{url} is neither a gs:// URL nor an absolute path")


class LocalFolder:
    """A folder of this machine."""

    write_interval_s = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, name: str) -> bytes | None:
        """Return the content, or None if there is no such file."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FolderError(f"{self._path / name}: {error.strerror}") from error

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole: written beside it, flushed, renamed."""
        final = self._path / name
        temporary = final.with_name(f".{final.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(final)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise FolderError(f"{final}: {error.strerror}") from error

    def set_aside(self, name: str) -> str:
        """Rename a file to the first free `<name>.corrupt-<n>`."""
        path = self._path / name
        count = 1
        while (target := path.with_name(f"{path.name}.corrupt-{count}")).exists():
            count += 1
        try:
            path.rename(target)
        except OSError as error:
            raise FolderError(f"{path}: {error.strerror}") from error
        return target.name


class GcsFolder:
    """A folder of a Cloud Storage bucket; objects are replaced atomically by nature."""

    write_interval_s = 15.0

    def __init__(self, url: str) -> None:
        bucket, _, self._prefix = url.removeprefix("gs://").partition("/")
        self._bucket_name = bucket
        self._bucket: Any = None
        self._lock = threading.Lock()

    def _blob(self, name: str) -> Any:
        with self._lock:
            if self._bucket is None:
                from google.cloud.storage import Client

                self._bucket = Client().bucket(self._bucket_name)
            return self._bucket.blob(f"{self._prefix}/{name}")

    def read(self, name: str) -> bytes | None:
        """Return the content, or None if there is no such object."""
        from google.cloud.exceptions import NotFound

        try:
            return bytes(self._blob(name).download_as_bytes(timeout=_GCS_TIMEOUT_S))
        except NotFound:
            return None
        except Exception as error:
            raise FolderError(f"{name}: {error}") from error

    def write(self, name: str, content: bytes) -> None:
        """Replace an object."""
        try:
            self._blob(name).upload_from_string(
                content, content_type="application/json", timeout=_GCS_TIMEOUT_S
            )
        except Exception as error:
            raise FolderError(f"{name}: {error}") from error

    def set_aside(self, name: str) -> str:
        """Copy an object to the first free `<name>.corrupt-<n>`, then delete it."""
        try:
            count = 1
            while self._blob(f"{name}.corrupt-{count}").exists(timeout=_GCS_TIMEOUT_S):
                count += 1
            source = self._blob(name)
            target = f"{name}.corrupt-{count}"
            self._bucket.copy_blob(
                source, self._bucket, f"{self._prefix}/{target}", timeout=_GCS_TIMEOUT_S
            )
            source.delete(timeout=_GCS_TIMEOUT_S)
        except Exception as error:
            raise FolderError(f"{name}: {error}") from error
        return target.rsplit("/", 1)[-1]
