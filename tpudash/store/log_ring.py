"""The newest log entries, in order of time, bounded in number and in bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tpudash.domain.log import LogEntry

DEFAULT_ENTRIES: Final = 50_000
DEFAULT_BYTES: Final = 64 * 1024 * 1024
ENTRY_OVERHEAD_BYTES: Final = 400


class LogRing:
    """Entries of all nodes, oldest first, each known once.

    A late entry is put where its timestamp belongs. `revision` grows whenever the order of what
    was there before changes (a late entry, an eviction), so that a view knows when appending is
    not enough. Each entry has an arrival number, from 0, which it keeps as long as it is held.

    Args:
        max_entries: How many entries are kept at most.
        max_bytes: How many bytes of text are kept at most, overhead included.
    """

    def __init__(self, max_entries: int = DEFAULT_ENTRIES, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: deque[LogEntry] = deque()
        self._numbers: deque[int] = deque()
        self._seen: set[tuple[str, str, str]] = set()
        self._bytes = 0
        self.arrived = 0
        self.evicted = 0
        self.suppressed = 0
        self.revision = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LogEntry]:
        return iter(self._entries)

    def newest(self, count: int) -> tuple[LogEntry, ...]:
        """Return the last `count` entries, oldest first."""
        start = max(0, len(self._entries) - count)
        return tuple(self._entries[index] for index in range(start, len(self._entries)))

    def last_of(
        self, node_ids: Collection[str], count: int, look_back: int
    ) -> dict[str, tuple[LogEntry, ...]]:
        """Return the last entries of each of some nodes, oldest first.

        Args:
            node_ids: The nodes; each gets a place in the answer.
            count: How many entries of a node are wanted at most.
            look_back: How many of the newest entries of all nodes are looked at.
        """
        found: dict[str, list[LogEntry]] = {node_id: [] for node_id in node_ids}
        for entry in islice(reversed(self._entries), look_back if found else 0):
            mine = found.get(entry.node_id)
            if mine is not None and len(mine) < count:
                mine.append(entry)
        return {node_id: tuple(reversed(entries)) for node_id, entries in found.items()}

    def tail_since(self, arrived: int) -> list[tuple[int, LogEntry]]:
        """Return the shortest tail that holds everything that arrived since, oldest first.

        Late entries lie among older ones, so the tail may begin with entries known before.

        Args:
            arrived: The value of `arrived` when the caller last looked.

        Returns:
            Pairs of arrival number and entry; all that is held, if something was evicted unseen.
        """
        wanted = self.arrived - arrived
        tail: list[tuple[int, LogEntry]] = []
        for pair in zip(reversed(self._numbers), reversed(self._entries), strict=True):
            if wanted <= 0:
                break
            wanted -= pair[0] >= arrived
            tail.append(pair)
        tail.reverse()
        return tail

    def add(self, entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
        """Add entries and return those that were new, in order of time."""
        fresh = []
        for entry in sorted(entries, key=lambda entry: entry.timestamp):
            key = _identity(entry)
            if key in self._seen:
                continue
            self._seen.add(key)
            self._insert(entry)
            self._bytes += _size(entry)
            fresh.append(entry)
        self._evict()
        return tuple(fresh)

    def _insert(self, entry: LogEntry) -> None:
        if not self._entries or entry.timestamp >= self._entries[-1].timestamp:
            self._entries.append(entry)
            self._numbers.append(self._number())
            return
        at = bisect_right(self._entries, entry.timestamp, key=lambda known: known.timestamp)
        self._entries.insert(at, entry)
        self._numbers.insert(at, self._number())
        self.revision += 1

    def _number(self) -> int:
        self.arrived += 1
        return self.arrived - 1

    def _evict(self) -> None:
        over = False
        while self._entries and (
            len(self._entries) > self._max_entries or self._bytes > self._max_bytes
        ):
            gone = self._entries.popleft()
            self._numbers.popleft()
            self._seen.discard(_identity(gone))
            self._bytes -= _size(gone)
            self.evicted += 1
            over = True
        self.revision += over


def _identity(entry: LogEntry) -> tuple[str, str, str]:
    """Entries that share log, timestamp and insert id are one (LogEntry.insert_id)."""
    key = entry.insert_id or entry.text
    return (entry.node_id, entry.timestamp.isoformat(), key)


def _size(entry: LogEntry) -> int:
    # The payload is as large as what was sent for it; its rendered text stands for it well enough.
    return ENTRY_OVERHEAD_BYTES + len(entry.text) * (2 if entry.payload else 1)
