"""A file of log lines, of any size: only the parts that are looked at are read.

It is cut into chunks of bytes; a line belongs to the chunk that it begins in. Rows are known by
the place of their first byte.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from tpudash.logtext.clean import LONGEST_LINE, clean_text
from tpudash.logtext.dumps import Fold
from tpudash.logtext.entries import UNKNOWN_TIME, entry_of_line
from tpudash.logtext.events import EVENT_WORDS
from tpudash.store.log_folds import LogFolds
from tpudash.store.log_lines import BlockText, LineCache, LogBlock, LogLine, LogSource, mark_of
from tpudash.store.log_record import line_of, micros_of, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tpudash.domain.log import LogEntry
    from tpudash.store.log_lines import FoldInfo

CHUNK: Final = 128 * 1024
MOST_LOADED: Final = 256
"""Chunks whose rows are kept; others are read again when they are wanted."""
MOST_SOURCES: Final = 60_000
_ERROR_RANK: Final = 5
_WORDS: Final = re.compile(rb"[a-z_]{3,}")
_NUMBERS: Final = re.compile(rb"(?<![.,0-9])[0-9]{4,}(?![.,0-9])")


_EMPTY: Final = LogBlock()


class FileBlock(LogBlock):
    """The rows of one chunk; its columns are empty until it is loaded.

    Attributes:
        start: Place of the chunk's first byte.
        count: How many rows there are, 0 before it was loaded for the first time.
        is_loaded: Whether the columns are there.
    """

    __slots__ = ("count", "is_loaded", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.count = 0
        self.version = 0
        self.members = 0
        self.is_mixed = False
        self.unload()

    def __len__(self) -> int:
        return self.count

    @property
    def is_ready(self) -> bool:
        """Whether the columns can be looked at without reading anything first."""
        return self.is_loaded

    def fill(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Take the chunk's rows."""
        super().__init__(version=self.version)
        if rows:
            self.extend(rows)
        self.count = len(rows)
        self.is_loaded = True

    def unload(self) -> None:
        """Give the columns back; all that are not loaded share the same empty ones."""
        self.times = _EMPTY.times
        self.numbers = _EMPTY.numbers
        self.sources = _EMPTY.sources
        self.marks = _EMPTY.marks
        self.folds = _EMPTY.folds
        self.addresses = _EMPTY.addresses
        self.lengths = _EMPTY.lengths
        self.hashes = _EMPTY.hashes
        self.is_loaded = False


class LogFile:
    """One file, which may grow, be cut or be replaced.

    Args:
        path: The file.

    Raises:
        OSError: It can't be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb", buffering=0)
        self._identity = _identity(os.fstat(self._file.fileno()))
        self._size = 0
        self._blocks: list[FileBlock] = []
        self._sources: list[LogSource] = []
        self._source_numbers: dict[tuple[object, ...], int] = {}
        self._folds: dict[int, FoldInfo] = {}
        self._loaded: OrderedDict[int, FileBlock] = OrderedDict()
        self._cache = LineCache()
        self.arrived = 0
        self.evicted = 0
        self.poll()

    def __len__(self) -> int:
        return sum(block.count for block in self._blocks)

    @property
    def size(self) -> int:
        """Bytes of the file as far as it was looked at."""
        return self._size

    @property
    def blocks(self) -> Sequence[FileBlock]:
        """The chunks, oldest first."""
        return self._blocks

    @property
    def sources(self) -> Sequence[LogSource]:
        """Who wrote the lines, as far as they say."""
        return self._sources

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def poll(self) -> bool:
        """Look whether the file has grown, was cut or was replaced; returns whether it changed."""
        try:
            now = self._path.stat()
        except OSError:
            now = os.fstat(self._file.fileno())
        if _identity(now) != self._identity:
            self._file.close()
            self._file = self._path.open("rb", buffering=0)
            self._identity = _identity(now)
            self._begin_anew()
        size = os.fstat(self._file.fileno()).st_size
        if size < self._size:
            self._begin_anew()
        if size == self._size:
            return False
        self._grow(size)
        return True

    def _begin_anew(self) -> None:
        self._blocks = []
        self._loaded.clear()
        self._folds.clear()
        self._cache = LineCache()
        self._size = 0
        self.evicted += 1

    def _grow(self, size: int) -> None:
        # Their last line may have been half a line, and the next ones begin there as well.
        for block in self._blocks[-2:]:
            self._loaded.pop(block.start, None)
            block.unload()
            block.version += 1
        self._cache = LineCache()
        begin = self._blocks[-1].start + CHUNK if self._blocks else 0
        self._blocks += [FileBlock(start) for start in range(begin, size, CHUNK)]
        self.arrived += size - self._size
        self._size = size
        if self._blocks:
            self.load(self._blocks[-1])

    # Loading.

    def load(self, block: LogBlock) -> None:
        """Read a chunk's rows, if they are not there."""
        if not isinstance(block, FileBlock):
            return
        if block.is_loaded:
            if block.start in self._loaded:
                self._loaded.move_to_end(block.start)
            return
        self._fill(block, self._lines_of(block))
        self._loaded[block.start] = block
        if len(self._loaded) > MOST_LOADED:
            _, oldest = self._loaded.popitem(last=False)
            oldest.unload()

    def _lines_of(self, block: FileBlock) -> list[tuple[int, bytes]]:
        """Return place and bytes of the lines that begin in a chunk."""
        start, end = block.start, min(block.start + CHUNK, self._size)
        data = self._read(max(0, start - 1), end - max(0, start - 1))
        begin = 0
        if start > 0:
            newline = data.find(b"\n")
            if newline < 0:
                return []
            begin = newline + 1
        place = max(0, start - 1) + begin
        lines = data[begin:].split(b"\n")
        rest = lines.pop()
        found = []
        for line in lines:
            found.append((place, line))
            place += len(line) + 1
        if rest:
            found.append((place, rest + self._rest_of_line(end)))
        return found

    def _rest_of_line(self, at: int) -> bytes:
        """Return the bytes up to the next line break, a bounded number of them."""
        found = bytearray()
        while at < self._size and len(found) < LONGEST_LINE:
            piece = self._read(at, 64 * 1024)
            newline = piece.find(b"\n")
            if newline >= 0:
                return bytes(found + piece[:newline])
            if not piece:
                break
            found += piece
            at += len(piece)
        return bytes(found)

    def _read(self, at: int, length: int) -> bytes:
        try:
            return os.pread(self._file.fileno(), length, at)
        except OSError:
            return b""

    def _fill(self, block: FileBlock, lines: list[tuple[int, bytes]]) -> None:
        folds = LogFolds()
        for source in self._sources:
            folds.add_source(source)
        micros = 0
        rows = []
        for place, raw in lines:
            entry = entry_of_line(_text(raw))
            source = self._source_of(entry, folds)
            _, text, rank, start = prepare(entry)
            if entry.timestamp != UNKNOWN_TIME:
                micros = micros_of(entry.timestamp)
            fold = folds.take(place, micros, text, source, start)
            mark = mark_of(rank, entry.event)
            if fold is Fold.HEAD and text.startswith(("Trace", "***")):
                mark = max(mark, _ERROR_RANK)
            rows.append((micros, place, source.number, mark, fold, place, len(raw), 0))
        block.fill(rows)
        self._folds.update(folds.infos)

    def _source_of(self, entry: LogEntry, folds: LogFolds) -> LogSource:
        place = (entry.node_id, entry.zone, entry.worker_id)
        key = (*place, entry.run, entry.attempt, entry.stream)
        number = self._source_numbers.get(key)
        if number is None and len(self._sources) >= MOST_SOURCES:
            return self._sources[-1]
        if number is None:
            number = self._source_numbers[key] = len(self._sources)
            self._sources.append(LogSource(number, *place, entry.run, entry.attempt, entry.stream))
            folds.add_source(self._sources[number])
        return self._sources[number]

    # Reading.

    def line(self, block: LogBlock, at: int) -> LogLine:
        """Return a row of a chunk with its text."""
        self.load(block)
        number = block.numbers[at]
        known = self._cache.get(number)
        if known is None:
            entry = entry_of_line(_text(self._read(number, block.lengths[at])))
            data = prepare(entry)[0]
            source = self._sources[block.sources[at]]
            micros = 0 if entry.timestamp == UNKNOWN_TIME else block.times[at]
            known = line_of(data, number, micros, source, block.marks[at])
            self._cache.put(known)
        return known

    def block_text(self, block: LogBlock) -> BlockText:
        """Return the texts of a chunk in one piece, in small letters, as they are in the file."""
        self.load(block)
        numbers, lengths = block.numbers, block.lengths
        if not numbers:
            return BlockText(b"", lambda: ((), (), ()))
        first = numbers[0]
        data = self._read(first, numbers[-1] + lengths[-1] - first)

        def index() -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
            starts = [number - first for number in numbers]
            ends = [start + size for start, size in zip(starts, lengths, strict=True)]
            return starts, ends, range(len(starts))

        return BlockText(data.lower(), index)

    def may_hold(self, block: LogBlock, needles: Sequence[bytes]) -> bool:
        """Whether some words may be in a chunk; looks at its bytes only.

        What is structured is shown in other words than it is written in: in those of the
        trainer's events, and with numbers written otherwise.
        """
        if not isinstance(block, FileBlock) or block.is_loaded:
            return True
        data = self._read(block.start, CHUNK + 4_096).lower()
        is_structured = b"\n{" in data or data.startswith(b"{")
        return all(
            needle in data or (is_structured and _may_describe(data, needle)) for needle in needles
        )

    def find_block(self, number: int, micros: int) -> int | None:  # noqa: ARG002
        """Return the index of the chunk that a row begins in, or None."""
        starts = [block.start for block in self._blocks]
        index = bisect_right(starts, number) - 1
        return index if index >= 0 else None

    def fold_of(self, number: int) -> FoldInfo | None:
        """Return what a row stands for, if it stands for more than itself."""
        return self._folds.get(number)

    def hold(self, block: LogBlock | None) -> None:
        """Do nothing: a file forgets nothing."""


def _may_describe(data: bytes, needle: bytes) -> bool:
    """Whether words could be in what the events in some bytes are described as."""
    return all(word in EVENT_WORDS or word in data for word in _WORDS.findall(needle)) and all(
        number in data for number in _NUMBERS.findall(needle)
    )


def _text(raw: bytes) -> str:
    return clean_text(raw.decode("utf-8", "replace"))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)
