"""Texts of log entries on disk, in files that have no name and vanish with the process.

Files are cut into segments; one is given back once nothing in it is wanted any more. When the
disk can't be written to, texts stay in memory and `limit` says how little of that may be used.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

DEFAULT_BYTES: Final = 512 * 1024 * 1024
MEMORY_BYTES: Final = 32 * 1024 * 1024
SEGMENTS: Final = 16
_LEAST_SEGMENT: Final = 64 * 1024
_BUFFER: Final = 128 * 1024
SEGMENT_BITS: Final = 40
"""Bits of an address that tell the place within a segment."""
_MASK: Final = (1 << SEGMENT_BITS) - 1


@dataclass(slots=True)
class _Segment:
    """A part of the spool: what is in its file, and then what is still in memory."""

    file: IO[bytes] | None
    base: int = 0
    written: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    alive: int = 0


class LogSpool:
    """An append-only store of texts by address, which grow with each text that is put.

    Args:
        folder: Where the files are; None keeps everything in memory.
        max_bytes: How much may be used on disk.

    Attributes:
        problem: Why the disk is not used, "" while it is.
    """

    def __init__(self, folder: Path | None = None, max_bytes: int = DEFAULT_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._segments: dict[int, _Segment] = {}
        self._newest = -1
        self._current: _Segment | None = None
        """The segment that texts are put into; None if the next one begins another."""
        self._segment_bytes = max(_LEAST_SEGMENT, max_bytes // SEGMENTS)
        self.problem = ""

    @property
    def limit(self) -> int:
        """How many bytes may be kept now."""
        on_disk = self._folder is not None and not self.problem
        return self._max_bytes if on_disk else min(self._max_bytes, MEMORY_BYTES)

    @property
    def place(self) -> str:
        """Where the texts are, for people."""
        if self._folder is None or self.problem:
            return "memory"
        return str(self._folder)

    @property
    def bytes_on_disk(self) -> int:
        """How much of the disk is used."""
        return sum(segment.written for segment in self._segments.values())

    def put(self, data: bytes) -> int:
        """Keep a text and return its address."""
        segment = self._current
        if segment is None:
            segment = self._next_segment()
        waiting = segment.waiting
        address = segment.base | (segment.written + len(waiting))
        waiting += data
        segment.alive += 1
        if len(waiting) >= _BUFFER:
            self._flush(segment)
            if self._is_full(segment):
                self._current = None
        return address

    def read(self, address: int, length: int) -> bytes:
        """Return the bytes at an address, which all belong to one segment; b"" if they are gone."""
        segment = self._segments.get(address >> SEGMENT_BITS)
        if segment is None:
            return b""
        at = address & _MASK
        if at >= segment.written:
            start = at - segment.written
            return bytes(segment.waiting[start : start + length])
        if at + length > segment.written and segment.file is not None:
            self._flush(segment)
        return self._pread(segment, at, length)

    def forget(self, address: int) -> None:
        """Say that the text at an address is no longer wanted."""
        number = address >> SEGMENT_BITS
        segment = self._segments.get(number)
        if segment is None:
            return
        segment.alive -= 1
        if segment.alive <= 0 and number != self._newest:
            self._drop(number)

    def close(self) -> None:
        """Give everything back."""
        for number in list(self._segments):
            self._drop(number)

    def _is_full(self, segment: _Segment) -> bool:
        filled = segment.written if segment.file is not None else len(segment.waiting)
        return filled >= self._segment_bytes

    def _drop(self, number: int) -> None:
        segment = self._segments.pop(number)
        if segment.file is not None:
            with contextlib.suppress(OSError):
                segment.file.close()

    def _next_segment(self) -> _Segment:
        before = self._segments.get(self._newest)
        if before is not None:
            self._flush(before)
            if before.alive <= 0:
                self._drop(self._newest)
        self._newest += 1
        segment = _Segment(self._open(), self._newest << SEGMENT_BITS)
        self._segments[self._newest] = self._current = segment
        return segment

    def _open(self) -> IO[bytes] | None:
        if self._folder is None or self.problem:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return tempfile.TemporaryFile(dir=self._folder, prefix="logs-", buffering=0)
        except OSError as error:
            self._fail(error)
            return None

    def _flush(self, segment: _Segment) -> None:
        if segment.file is None or not segment.waiting:
            return
        try:
            with memoryview(segment.waiting) as waiting:
                done = 0
                while done < len(waiting):
                    done += os.pwrite(segment.file.fileno(), waiting[done:], segment.written + done)
        except OSError as error:
            # What was written before stays readable; what waits stays in memory.
            self._fail(error)
            self._leave_disk(segment)
            return
        segment.written += len(segment.waiting)
        segment.waiting = bytearray()

    def _leave_disk(self, segment: _Segment) -> None:
        """Go on in a segment that never touches the disk."""
        if self._segments.get(self._newest) is segment:
            self._newest += 1
            self._current = _Segment(None, self._newest << SEGMENT_BITS)
            self._segments[self._newest] = self._current

    def _pread(self, segment: _Segment, at: int, length: int) -> bytes:
        if segment.file is None:
            return b""
        try:
            data = os.pread(segment.file.fileno(), min(length, segment.written - at), at)
        except OSError as error:
            logger.warning("the log spool can't be read: %s", error)
            return b""
        rest = length - len(data)
        return data + bytes(segment.waiting[:rest]) if rest > 0 else data

    def _fail(self, error: OSError) -> None:
        self.problem = f"{self._folder}: {error.strerror or error}"
        logger.warning("logs are kept in memory: %s", self.problem)
