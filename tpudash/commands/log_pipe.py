"""Reads log lines from a pipe in a thread, cleans them, and keeps little of them waiting."""

from __future__ import annotations

import os
import queue
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.logtext.clean import Cleaner
from tpudash.logtext.entries import UNKNOWN_TIME, entry_of_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tpudash.clock import Clock
    from tpudash.domain.log import LogEntry
    from tpudash.logtext.clean import CleanLine
    from tpudash.store.log_ring import LogRing

PIECE: Final = 64 * 1024
MOST_WAITING: Final = 16
"""Pieces that may wait; then whoever writes into the pipe has to wait as well."""
SLICE_S: Final = 0.03
LINES_AT_ONCE: Final = 500


def read_lines(descriptor: int, cleaner: Cleaner) -> Iterator[list[CleanLine]]:
    """Yield clean lines as they come, until the pipe is closed."""
    while data := os.read(descriptor, PIECE):
        yield cleaner.feed(data)
    yield cleaner.finish()


class LogPipe:
    """Feeds a log ring with what a pipe brings.

    Args:
        descriptor: What to read from.
        ring: Where entries go, when `take_in` is called.
    """

    def __init__(self, descriptor: int, ring: LogRing, clock: Clock) -> None:
        self._descriptor = descriptor
        self._ring = ring
        self._clock = clock
        self._cleaner = Cleaner()
        self._waiting: queue.Queue[list[CleanLine]] = queue.Queue(MOST_WAITING)
        self._rest: list[CleanLine] = []
        self.is_over = False
        self._thread = threading.Thread(target=self._read, name="log pipe", daemon=True)
        self._thread.start()

    @property
    def partial(self) -> str:
        """The line that is being written, such as a progress bar."""
        return self._cleaner.partial

    def _read(self) -> None:
        try:
            for lines in read_lines(self._descriptor, self._cleaner):
                self._waiting.put(lines)
        except OSError:
            pass
        self.is_over = True

    def take_in(self) -> bool:
        """Put what came into the ring, for a short while; returns whether there was anything."""
        end = time.perf_counter() + SLICE_S
        found = False
        while time.perf_counter() < end:
            if not self._rest:
                try:
                    self._rest = self._waiting.get_nowait()
                except queue.Empty:
                    break
            some, self._rest = self._rest[:LINES_AT_ONCE], self._rest[LINES_AT_ONCE:]
            self._ring.add(self._entries(some))
            found = found or bool(some)
        return found

    def _entries(self, lines: Sequence[CleanLine]) -> list[LogEntry]:
        """Return lines as entries; those without a time are of now, in the order they came in."""
        now = self._clock.now()
        entries: list[LogEntry] = []
        for line in lines:
            entry = entry_of_line(line.text)
            if not entry.insert_id:
                # Equal lines of a pipe are two lines.
                number = self._ring.arrived + len(entries)
                entry = replace(entry, insert_id=f"line-{number}")
            is_timeless = entry.timestamp == UNKNOWN_TIME
            entries.append(replace(entry, timestamp=now) if is_timeless else entry)
        return entries
