"""Log entries on disk while Cloud Logging cannot be reached: bounded, and kept over restarts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_COMPACT_BYTES = 2**20


class Spool:
    """A file of JSON lines with a reading position; used by one thread at a time."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        self._read = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._size = path.stat().st_size if path.exists() else 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return self._read >= self._size

    def append(self, entries: list[dict[str, Any]]) -> int:
        """Keep entries. Returns how many did not fit and are lost."""
        lines = [(json.dumps(entry, allow_nan=False) + "\n").encode() for entry in entries]
        kept = 0
        room = self._limit - (self._size - self._read)
        while kept < len(lines) and len(lines[kept]) <= room:
            room -= len(lines[kept])
            kept += 1
        if kept and not self._write(b"".join(lines[:kept])):
            kept = 0
        return len(lines) - kept

    def _write(self, data: bytes) -> bool:
        try:
            with self._path.open("ab") as file:
                file.write(data)
        except OSError:
            self._cut_torn_line()
            return False
        self._size += len(data)
        return True

    def _cut_torn_line(self) -> None:
        try:
            if self._path.exists():
                os.truncate(self._path, self._size)
        except OSError:
            pass

    def peek(self, count: int) -> tuple[list[dict[str, Any]], int]:
        """Return up to `count` entries from the front, and the position after them.

        Lines that cannot be read (torn by a crash) are skipped.
        """
        entries: list[dict[str, Any]] = []
        position = self._read
        try:
            with self._path.open("rb") as file:
                file.seek(position)
                while len(entries) < count and (line := file.readline()):
                    position += len(line)
                    entry = _decode(line)
                    if entry is not None:
                        entries.append(entry)
        except OSError:
            return [], self._size
        return entries, position

    def consume(self, position: int) -> None:
        """Forget everything before a position that `peek` returned."""
        self._read = position
        if self.empty:
            self._rewrite(b"")
        elif self._read >= _COMPACT_BYTES and self._read > self._size // 2:
            with self._path.open("rb") as file:
                file.seek(self._read)
                self._rewrite(file.read())

    def _rewrite(self, content: bytes) -> None:
        temporary = self._path.with_suffix(".new")
        try:
            temporary.write_bytes(content)
            temporary.replace(self._path)
        except OSError:
            return
        self._read, self._size = 0, len(content)


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
