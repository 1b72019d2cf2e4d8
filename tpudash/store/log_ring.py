"""The log of all nodes in order of time: columns in memory, texts on disk, bounded in both."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import Severity
from tpudash.logtext.dumps import Fold
from tpudash.store.log_folds import LogFolds
from tpudash.store.log_lines import (
    EVENTS,
    OTHER_EVENT,
    RANKS,
    BlockText,
    LineCache,
    LogBlock,
    LogLine,
    LogSource,
    mark_of,
)
from tpudash.store.log_pulses import LogPulses
from tpudash.store.log_record import identity_of, line_of, micros_of, prepare
from tpudash.store.log_spool import DEFAULT_BYTES, SEGMENT_BITS, LogSpool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from tpudash.domain.log import LogEntry
    from tpudash.store.log_lines import FoldInfo

DEFAULT_ENTRIES: Final = 1_000_000
ROWS: Final = 2_048
"""Rows of a block; a late entry moves at most twice as many."""
HELD_FACTOR: Final = 2
MOST_SOURCES: Final = 60_000
LOOKED_AT_FOR_DOUBLES: Final = 8
MOST_OLDER_EVENTS: Final = 5_000
_ERROR: Final = RANKS[Severity.ERROR]
MOST_AT_ONCE: Final = 4 * 1024 * 1024
_RANKS: Final = 0x0F
_TIME: Final = attrgetter("timestamp")


class LogRing:
    """Entries of all nodes, oldest first, each known once.

    A late entry is put where its timestamp belongs. `revision` grows whenever the order of what
    was there before changes (a late entry, an eviction), so that a view knows when appending is
    not enough. Each entry has an arrival number, from 0, which it keeps as long as it is held.

    Args:
        max_entries: How many entries are kept at most.
        max_bytes: How many bytes of text are kept at most.
        folder: Where the texts are spooled, in files without a name; None keeps them in memory,
            and then far fewer of them.
    """

    def __init__(
        self,
        max_entries: int = DEFAULT_ENTRIES,
        max_bytes: int = DEFAULT_BYTES,
        folder: Path | None = None,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.spool = LogSpool(folder, max_bytes)
        self.blocks: list[LogBlock] = []
        self.sources: list[LogSource] = []
        self.folds = LogFolds()
        self.pulses = LogPulses()
        self._source_numbers: dict[tuple[object, ...], int] = {}
        self._cache = LineCache()
        self._held: LogBlock | None = None
        self._length = 0
        self._bytes = 0
        self._last_micros = -(1 << 62)
        self._waiting: list[tuple[int, ...]] = []
        self.arrived = 0
        self.evicted = 0
        self.suppressed = 0
        self.lag_s: float | None = None
        """How old the newest live entries were when they came, in seconds."""
        self.revision = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[LogEntry]:
        for block in list(self.blocks):
            for at in range(len(block)):
                yield self._read(block, at).entry

    def spool_in(self, folder: Path) -> None:
        """Spool to files in a folder from now on; only before the first entry came."""
        if not self.arrived:
            self.spool = LogSpool(folder, self._max_bytes)

    def close(self) -> None:
        """Give the disk back; nothing can be read afterwards."""
        self.spool.close()

    # Adding.

    def add(self, entries: Iterable[LogEntry]) -> tuple[LogEntry, ...]:
        """Add entries and return those that were new, in order of time."""
        fresh = [entry for entry in sorted(entries, key=_TIME) if self._take(entry)]
        self._settle()
        self._evict()
        return tuple(fresh)

    def _take(self, entry: LogEntry) -> bool:
        micros = micros_of(entry.timestamp)
        known_by = hash((entry.node_id, entry.insert_id or entry.text)) & 0xFFFF_FFFF
        is_late = micros <= self._last_micros
        if is_late:
            self._settle()
            if self._is_known(entry, micros, known_by):
                return False
        data, text, mark, start = prepare(entry)
        source = self._source_of(entry)
        number = self.arrived
        self.arrived += 1
        fold = self.folds.take(number, micros, text, source, start)
        if entry.payload is not None:
            mark = mark_of(mark, entry.event)
        elif fold is Fold.HEAD and mark < _ERROR and text.startswith(("Trace", "***")):
            mark = _ERROR
        self.pulses.beat(source.number, micros, text, mark)
        if mark > _RANKS:
            self.pulses.note_step(source.number, micros, entry)
        size = len(data)
        address = self.spool.put(data)
        row = (micros, number, source.number, mark, fold, address, size, known_by)
        if is_late:
            self._insert(micros, row, fold)
        else:
            self._last_micros = micros
            self._waiting.append(row)
        self._length += 1
        self._bytes += size
        return True

    def _settle(self) -> None:
        """Put the rows that came in order at the end."""
        rows, self._waiting = self._waiting, []
        while rows:
            block = self.blocks[-1] if self.blocks else None
            if block is None or len(block.times) >= ROWS:
                block = LogBlock()
                self.blocks.append(block)
            room = ROWS - len(block.times)
            block.extend(rows[:room])
            rows = rows[room:]

    def _insert(self, micros: int, row: tuple[int, ...], fold: Fold) -> None:
        """Put a late row behind all that are not younger."""
        at = bisect_right(self.blocks, micros, key=lambda block: block.times[0]) - 1
        block = self.blocks[max(0, at)]
        place = bisect_right(block.times, micros)
        if place == len(block) and block is self.blocks[-1]:
            block.extend([row])
            return
        for column, value in zip(block.columns(), row, strict=True):
            column.insert(place, value)
        block.members += fold >= Fold.MEMBER
        block.is_mixed = True
        block.version += 1
        self.revision += 1
        if len(block) > 2 * ROWS:
            self.blocks.insert(self.blocks.index(block) + 1, block.split())

    def _is_known(self, entry: LogEntry, micros: int, known_by: int) -> bool:
        """Whether there is such an entry: of this time, node and insert id (or text)."""
        last = bisect_right(self.blocks, micros, key=lambda block: block.times[0]) - 1
        for at in range(last, max(-1, last - LOOKED_AT_FOR_DOUBLES), -1):
            block = self.blocks[at]
            start = bisect_left(block.times, micros)
            for place in range(start, bisect_right(block.times, micros, lo=start)):
                if block.hashes[place] == known_by and self._is_same(block, place, entry):
                    return True
            if start > 0:
                return False
        return False

    def _is_same(self, block: LogBlock, place: int, entry: LogEntry) -> bool:
        known = self._read(block, place).entry
        if known.node_id != entry.node_id or known.insert_id != identity_of(entry):
            return False
        return bool(known.insert_id) or known.text == prepare(entry)[1]

    def _source_of(self, entry: LogEntry) -> LogSource:
        key = (
            entry.node_id,
            entry.zone,
            entry.worker_id,
            entry.run,
            entry.attempt,
            entry.stream,
        )
        number = self._source_numbers.get(key)
        if number is not None:
            return self.sources[number]
        if len(self.sources) >= MOST_SOURCES:
            return self.sources[-1]
        source = LogSource(len(self.sources), *key)
        self.sources.append(source)
        self._source_numbers[key] = source.number
        self.folds.add_source(source)
        self.pulses.add_source(source)
        return source

    # Forgetting.

    def hold(self, block: LogBlock | None) -> None:
        """Keep this block and later ones, until twice as much is held as usual."""
        self._held = block

    def _evict(self) -> None:
        over = False
        while self.blocks:
            first = self.blocks[0]
            factor = HELD_FACTOR if first is self._held else 1
            excess = self._length - factor * self._max_entries
            if self._bytes > factor * min(self._max_bytes, self.spool.limit):
                excess = max(excess, 1 if len(first) < ROWS else 64)
            if excess <= 0:
                break
            self._drop(first, min(excess, len(first)))
            over = True
        self.revision += over

    def _drop(self, block: LogBlock, count: int) -> None:
        for at in range(count):
            self.spool.forget(block.addresses[at])
            self._bytes -= block.lengths[at]
            if self.folds.infos:
                self.folds.forget(block.numbers[at])
        if count == len(block):
            self.blocks.pop(0)
        block.drop_head(count)
        self._length -= count
        self.evicted += count

    # Reading.

    def line(self, block: LogBlock, at: int) -> LogLine:
        """Return a row of a block with its text."""
        known = self._cache.get(block.numbers[at])
        if known is None:
            known = self._read(block, at)
            self._cache.put(known)
        return known

    def _read(self, block: LogBlock, at: int) -> LogLine:
        data = self.spool.read(block.addresses[at], block.lengths[at])
        source = self.sources[block.sources[at]]
        return line_of(data, block.numbers[at], block.times[at], source, block.marks[at])

    def block_text(self, block: LogBlock) -> BlockText:
        """Return the texts of a block in one piece, in small letters."""
        addresses, lengths = block.addresses, block.lengths
        order: Sequence[int] = range(len(block))
        if not order:
            return BlockText(b"", lambda: ((), (), ()))
        if block.is_mixed:
            order = sorted(order, key=addresses.__getitem__)
        first, last = addresses[order[0]], addresses[order[-1]]
        span = last - first + lengths[order[-1]]
        is_one_piece = first >> SEGMENT_BITS == last >> SEGMENT_BITS and span <= MOST_AT_ONCE
        if is_one_piece:
            data = self.spool.read(first, span)
        else:
            data = b"".join(self.spool.read(addresses[at], lengths[at]) for at in order)

        def index() -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
            if is_one_piece:
                starts = [addresses[at] - first for at in order]
            else:
                starts = [0, *accumulate(lengths[at] for at in order)][:-1]
            ends = [start + lengths[at] for start, at in zip(starts, order, strict=True)]
            return starts, ends, order

        return BlockText(data.lower(), index)

    def load(self, block: LogBlock) -> None:
        """Do nothing: the columns are always there."""

    def may_hold(self, block: LogBlock, needles: Sequence[bytes]) -> bool:  # noqa: ARG002
        """Return True: everything is at hand, and a look costs little."""
        return True

    def find_block(self, number: int, micros: int) -> int | None:
        """Return the index of the block in which a row is, or None."""
        last = bisect_right(self.blocks, micros, key=lambda block: block.times[0]) - 1
        for at in range(last, max(-1, last - LOOKED_AT_FOR_DOUBLES), -1):
            if self.blocks[at].index_of(number) is not None:
                return at
        return None

    def fold_of(self, number: int) -> FoldInfo | None:
        """Return what a row stands for, if it stands for more than itself."""
        return self.folds.infos.get(number)

    def newest(self, count: int) -> tuple[LogEntry, ...]:
        """Return the last `count` entries, oldest first."""
        found = [self.line(block, at).entry for block, at in islice(self._backwards(), count)]
        return tuple(reversed(found))

    def _backwards(self) -> Iterator[tuple[LogBlock, int]]:
        for block in reversed(self.blocks):
            for at in range(len(block) - 1, -1, -1):
                yield block, at

    def older_events(self, names: Collection[str], newest: int) -> tuple[LogEntry, ...]:
        """Return the trainers' events of some kinds that are not among the newest entries."""
        wanted = {EVENTS.index(name) if name in EVENTS else OTHER_EVENT for name in names}
        found: list[LogEntry] = []
        for block, at in islice(self._backwards(), newest, None):
            if block.marks[at] >> 4 in wanted and len(found) < MOST_OLDER_EVENTS:
                entry = self._read(block, at).entry
                if entry.event in names:
                    found.append(entry)
        return tuple(reversed(found))

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
        for block, at in islice(self._backwards(), look_back if found else 0):
            mine = found.get(self.sources[block.sources[at]].node_id)
            if mine is not None and len(mine) < count:
                mine.append(self._read(block, at).entry)
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
        for block, at in self._backwards():
            if wanted <= 0:
                break
            number = block.numbers[at]
            wanted -= number >= arrived
            tail.append((number, self.line(block, at).entry))
        tail.reverse()
        return tail
