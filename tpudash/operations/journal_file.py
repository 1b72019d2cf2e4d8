"""The journal as a file of JSON lines: appended under a lock, flushed, healed when damaged."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Records = tuple[Mapping[str, Any], ...]

logger = logging.getLogger(__name__)

_FOR_OWNER_ONLY: Final = 0o600
LONGEST_BYTES: Final = 512 * 1024
"""A file that is longer than this is shortened before the next operation begins."""


class JournalFile:
    """Records of any process of this user, one JSON object a line, oldest first.

    A line that was cut off by a crash was never relied upon, as nobody acts before its record is on
    the disk; it is dropped. Any other line that is no JSON object means that the file is damaged:
    the next writer keeps the damaged file under another name, and goes on with the good lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_path = path.with_name(f"{path.name}.lock")
        self._seen: tuple[int, int, int] | None = None
        self._records: tuple[Mapping[str, Any], ...] = ()
        self._bad_lines: tuple[int, ...] = ()
        self._is_whole = False
        self.generation = 0
        """Changes whenever records that were given before may have changed, or gone."""

    def prepare(self, keep: Callable[[Records], Records] | None = None) -> None:
        """See that records can be written, and shorten the file when it has grown long.

        Args:
            keep: Returns those of all records that are still needed, in their order.

        Raises:
            ConfigurationError: The folder can't be made or written to.
        """
        with self._locked():
            self._heal()
            if keep is not None and self._seen is not None and self._seen[1] > LONGEST_BYTES:
                self._write_anew(keep(self._records)).rename(self.path)
                self._refresh()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; it is on the disk when this returns.

        Raises:
            ConfigurationError: It could not be written.
        """
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with self._locked():
            self._heal()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            descriptor = os.open(self.path, flags, _FOR_OWNER_ONLY)
            try:
                _write_all(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def records(self) -> tuple[Mapping[str, Any], ...]:
        """Return all records that can be read.

        Raises:
            ConfigurationError: The file is there and can't be read.
        """
        with self._explained("read"):
            self._refresh()
        return self._records

    @property
    def problem(self) -> str:
        """What was wrong with the file when it was last read, or "" ."""
        if not self._bad_lines:
            return ""
        lines = ", ".join(map(str, self._bad_lines[:5]))
        return f"{self.path} is damaged in {len(self._bad_lines)} lines ({lines})"

    def _refresh(self) -> None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._seen, self._records, self._bad_lines = None, (), ()
            self.generation += 1
            return
        now = (found.st_ino, found.st_size, found.st_mtime_ns)
        if now == self._seen:
            return
        if not self._took_in_more(now):
            content = self.path.read_bytes()
            self._records, self._bad_lines = _parsed(content)
            self.generation += 1
            self._is_whole = content.endswith(b"\n") and not self._bad_lines
            # Somebody may have appended between the two looks; the next one sees that.
            now = (now[0], len(content), now[2])
        self._seen = now

    def _took_in_more(self, now: tuple[int, int, int]) -> bool:
        """Read what was appended since the last look, where that is all that happened."""
        before = self._seen
        if before is None or not self._is_whole or now[0] != before[0] or now[1] <= before[1]:
            return False
        with self.path.open("rb") as file:
            file.seek(before[1])
            content = file.read(now[1] - before[1])
        records, bad = _parsed(content)
        if bad or not content.endswith(b"\n"):
            return False
        self._records = (*self._records, *records)
        return True

    def _heal(self) -> None:
        """Drop a line that was cut off, and set a damaged file aside; only under the lock."""
        self._refresh()
        if self._bad_lines:
            logger.warning("%s; it is set aside", self.problem)
            self._set_aside()
        elif self._seen is not None:
            self._end_last_line()

    def _end_last_line(self) -> None:
        with self.path.open("r+b") as file:
            content = file.read()
            if not content or content.endswith(b"\n"):
                return
            start = content.rfind(b"\n") + 1
            if _decoded(content[start:]) is None:
                logger.warning("the last line of %s was cut off and is dropped", self.path)
                file.truncate(start)
            else:
                file.write(b"\n")
            os.fsync(file.fileno())

    def _set_aside(self) -> None:
        fresh = self._write_anew(self._records)
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.corrupt-{number}")).exists():
            number += 1
        self.path.rename(aside)
        fresh.rename(self.path)
        self._refresh()

    def _write_anew(self, records: Records) -> Path:
        """Write records to a new file beside the old one, on the disk when this returns."""
        good = b"".join(json.dumps(one).encode() + b"\n" for one in records)
        fresh = self.path.with_name(f"{self.path.name}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FOR_OWNER_ONLY)
        try:
            _write_all(descriptor, good)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return fresh

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._explained("write"):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, _FOR_OWNER_ONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigurationError(
                f"can't {verb} the journal of operations",
                detail=f"{error.filename or self.path}: {error.strerror or error}",
                hint="make the state directory writable, or name another with TPUDASH_STATE_DIR",
            ) from error


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _parsed(content: bytes) -> tuple[tuple[Mapping[str, Any], ...], tuple[int, ...]]:
    """Return the records, and the numbers of whole lines that are none."""
    records, bad = [], []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record = _decoded(line)
        if record is not None:
            records.append(record)
        elif number < len(lines):
            bad.append(number)
    return tuple(records), tuple(bad)


def _decoded(line: bytes) -> Mapping[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
