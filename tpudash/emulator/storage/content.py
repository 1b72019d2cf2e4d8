"""Content on its way into the store: a file that grows, with its checksums."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK = 256 * 1024


class Content:
    """What is being uploaded; call `discard` unless the store has taken it.

    Args:
        folder: Where the file lies until the store takes it; on the store's own disk.
        begun: Name of a file there that an earlier process had begun, to go on with.
    """

    def __init__(self, folder: Path, begun: str = "") -> None:
        if begun:
            self.path = folder / begun
            self._file = self.path.open("ab", buffering=0)
        else:
            descriptor, name = tempfile.mkstemp(prefix="part-", dir=folder)
            self.path = Path(name)
            self._file = os.fdopen(descriptor, "wb", buffering=0)
        self.size = 0
        self._crc32c: Any = google_crc32c.Checksum()
        self._md5 = hashlib.md5(usedforsecurity=False)
        if begun:
            with self.path.open("rb") as source:
                while data := source.read(_CHUNK):
                    self._count(data)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self._count(data)

    def _count(self, data: bytes) -> None:
        self._crc32c.update(data)
        self._md5.update(data)
        self.size += len(data)

    def append_files(self, paths: Iterable[Path]) -> None:
        """Append the content of files."""
        for path in paths:
            with path.open("rb") as source:
                while data := source.read(_CHUNK):
                    self.write(data)

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._file.close()

    def discard(self) -> None:
        """Close and delete the file, if it is still here."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    @property
    def crc32c(self) -> str:
        """The checksum as Cloud Storage shows it: base64 of its big-endian bytes."""
        return base64.b64encode(self._crc32c.digest()).decode()

    @property
    def md5(self) -> str:
        """The hash in base64."""
        return base64.b64encode(self._md5.digest()).decode()
