"""Log entries: kept in time order, written once each, followed live."""

from __future__ import annotations

import asyncio
import bisect
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from google.cloud.logging_v2.types import log_entry as log_entry_types

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from tpudash.clock import Clock
    from tpudash.emulator.identifiers import Identifiers
    from tpudash.emulator.world.state_file import StateFile

LogEntry: Any = log_entry_types.LogEntry.pb()
Key: TypeAlias = tuple[int, int]
"""Position of an entry: nanoseconds since the epoch, then order of arrival."""

_TAIL_BACKLOG = 20_000


@dataclass(slots=True)
class Tail:
    """A live reader; what it does not fetch in time is counted and left out."""

    matches: Callable[[Any], bool]
    backlog: deque[Any] = field(default_factory=deque)
    suppressed: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, entry: Any) -> None:
        """Take a new entry if it matches."""
        if not self.matches(entry):
            return
        if len(self.backlog) >= _TAIL_BACKLOG:
            self.suppressed += 1
            return
        self.backlog.append(entry)
        self.arrived.set()


def key_of(entry: Any, sequence: int) -> Key:
    """Return the position of an entry."""
    return entry.timestamp.ToNanoseconds(), sequence


class LogStore:
    """All entries of all projects, the oldest dropped beyond a limit."""

    def __init__(
        self, clock: Clock, identifiers: Identifiers, state: StateFile, limit: int
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._state = state
        self._limit = limit
        self._sequence = 0
        self._keys: list[Key] = []
        self._entries: dict[int, Any] = {}
        self._seen: set[tuple[str, int, str]] = set()
        self._tails: list[Tail] = []
        self.listeners: list[Callable[[Any], None]] = []
        """Called with each new entry."""

        for sequence, value in state.load_log():
            self._index(LogEntry.FromString(value), sequence)
            self._sequence = sequence

    def __len__(self) -> int:
        return len(self._keys)

    def write(self, project: str, entries: Sequence[Any]) -> None:
        """Store entries; one with the log name, time and insert id of another is left out.

        Missing times, insert ids and severities are filled in as Cloud Logging does.
        """
        rows = []
        for entry in entries:
            self._complete(project, entry)
            if self._identity(entry) in self._seen:
                continue
            self._sequence += 1
            self._index(entry, self._sequence)
            rows.append((self._sequence, entry.SerializeToString()))
            for tail in self._tails:
                tail.offer(entry)
            for listener in self.listeners:
                listener(entry)
        if rows:
            self._state.append_log(rows)
            self._trim()

    def _complete(self, project: str, entry: Any) -> None:
        now = self._clock.now()
        entry.receive_timestamp.FromDatetime(now)
        if not entry.HasField("timestamp"):
            entry.timestamp.FromDatetime(now)
        if not entry.insert_id:
            entry.insert_id = self._identifiers.insert_id()
        if entry.resource.type and not entry.resource.labels["project_id"]:
            entry.resource.labels["project_id"] = project

    @staticmethod
    def _identity(entry: Any) -> tuple[str, int, str]:
        return entry.log_name, entry.timestamp.ToNanoseconds(), entry.insert_id

    def _index(self, entry: Any, sequence: int) -> None:
        key = key_of(entry, sequence)
        if not self._keys or key > self._keys[-1]:
            self._keys.append(key)
        else:
            bisect.insort(self._keys, key)
        self._entries[sequence] = entry
        self._seen.add(self._identity(entry))

    def _trim(self) -> None:
        excess = len(self._keys) - self._limit
        if excess > self._limit // 20:
            self._forget([key[1] for key in self._keys[:excess]])
            del self._keys[:excess]

    def _forget(self, sequences: list[int]) -> None:
        for sequence in sequences:
            self._seen.discard(self._identity(self._entries.pop(sequence)))
        self._state.remove_log(sequences)

    async def scan(
        self, since_ns: int | None, until_ns: int | None, after: Key | None, *, newest_first: bool
    ) -> AsyncIterator[tuple[Key, Any]]:
        """Yield (position, entry) in time order within bounds, letting other tasks run.

        Args:
            since_ns: Earliest time, inclusive.
            until_ns: Latest time, inclusive.
            after: Position behind which to begin, in the direction of travel.
            newest_first: The direction of travel.
        """
        low = 0 if since_ns is None else bisect.bisect_left(self._keys, (since_ns, 0))
        high = len(self._keys)
        if until_ns is not None:
            high = bisect.bisect_left(self._keys, (until_ns + 1, 0))
        if after is not None and newest_first:
            high = min(high, bisect.bisect_left(self._keys, after))
        elif after is not None:
            low = max(low, bisect.bisect_right(self._keys, after))
        keys = self._keys[low:high]
        if newest_first:
            keys.reverse()
        for count, key in enumerate(keys):
            if count % 2_000 == 1_999:
                await asyncio.sleep(0)
            entry = self._entries.get(key[1])
            if entry is not None:
                yield key, entry

    def log_names(self) -> set[str]:
        """Return the full names of the logs that have entries."""
        return {entry.log_name for entry in self._entries.values()}

    def delete_log(self, log_name: str) -> bool:
        """Delete all entries of a log; return whether there were any."""
        doomed = [number for number, entry in self._entries.items() if entry.log_name == log_name]
        gone = set(doomed)
        self._keys = [key for key in self._keys if key[1] not in gone]
        self._forget(doomed)
        return bool(doomed)

    def follow(self, matches: Callable[[Any], bool]) -> Tail:
        """Begin a live reader; end it with `unfollow`."""
        tail = Tail(matches)
        self._tails.append(tail)
        return tail

    def unfollow(self, tail: Tail) -> None:
        """End a live reader."""
        self._tails.remove(tail)

    @property
    def tails(self) -> int:
        """How many live readers there are."""
        return len(self._tails)
