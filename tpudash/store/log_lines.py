"""What a log is to those who look at it: blocks of rows in columns, and a text for each row.

Two logs are read in this way: the entries that sources sent (`log_ring`), and a file (`log_file`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tpudash.domain.log import Severity
from tpudash.logtext.dumps import Fold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.domain.log import LogEntry

SEVERITIES: Final = tuple(Severity)
"""Severities by their rank."""
RANKS: Final = {severity: rank for rank, severity in enumerate(SEVERITIES)}
RANK_MASK: Final = 0x0F
EVENTS: Final = (
    *("", "step", "eval", "checkpoint", "finish"),
    *("start", "restore", "preempt", "error", "warning"),
)
"""Events that are told apart in a row's mark; the last place is for any other."""
_EVENT_CODES: Final = {name: code for code, name in enumerate(EVENTS)}
OTHER_EVENT: Final = len(EVENTS)
CACHED_ROWS: Final = 2_000


def mark_of(rank: int, event: str | None) -> int:
    """Return severity and kind of event in one byte."""
    if event is None:
        return rank
    return rank | _EVENT_CODES.get(event, OTHER_EVENT) << 4


def event_of(mark: int) -> str:
    """Return the event's name as far as a mark tells it."""
    code = mark >> 4
    return EVENTS[code] if code < len(EVENTS) else "other"


@dataclass(slots=True, eq=False)
class LogSource:
    """Who wrote a line.

    Attributes:
        number: Its place in the list of sources.
    """

    number: int
    node_id: str = ""
    zone: str = ""
    worker_id: str = ""
    run: str | None = None
    attempt: int | None = None
    stream: str = ""


class LogLine(NamedTuple):
    """One row of a log with its text.

    Attributes:
        number: What it is known by as long as it is held.
        text: What it says, clean, all of it; lines are parted by line breaks.
        entry: The entry that it was made of, with a clean text.
    """

    number: int
    text: str
    entry: LogEntry
    source: LogSource
    mark: int
    micros: int
    """Its time, in microseconds since the epoch."""


@dataclass(slots=True)
class FoldInfo:
    """What stands behind the one visible row of a fold.

    Attributes:
        members: Lines of the dump that follow the row.
        last: What a traceback ends with.
        workers: How many workers said the same, itself included.
    """

    members: int = 0
    last: str = ""
    workers: int = 1


@dataclass(slots=True, eq=False)
class LogBlock:
    """Some hundreds of rows that follow each other, in columns.

    Attributes:
        version: Grows when rows change in another way than by new ones at the end.
        members: How many rows are members of folds.
        is_mixed: Late rows were put between others, so addresses may not ascend.
    """

    times: array[int] = field(default_factory=lambda: array("q"))
    """Microseconds since the epoch."""
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    sources: array[int] = field(default_factory=lambda: array("H"))
    marks: array[int] = field(default_factory=lambda: array("B"))
    folds: array[int] = field(default_factory=lambda: array("B"))
    addresses: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("I"))
    hashes: array[int] = field(default_factory=lambda: array("I"))
    """Of what an entry is known by beside its time."""
    version: int = 0
    members: int = 0
    is_mixed: bool = False

    def __len__(self) -> int:
        return len(self.times)

    @property
    def is_ready(self) -> bool:
        """Whether the columns can be looked at without reading anything first."""
        return True

    def columns(self) -> tuple[array[int], ...]:
        """Return all columns."""
        return (
            self.times,
            self.numbers,
            self.sources,
            self.marks,
            self.folds,
            self.addresses,
            self.lengths,
            self.hashes,
        )

    def extend(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Add rows at the end, each a value for every column."""
        for column, values in zip(self.columns(), zip(*rows, strict=True), strict=True):
            column.extend(values)
        self.members += sum(row[4] >= Fold.MEMBER for row in rows)

    def drop_head(self, count: int) -> None:
        """Forget the first rows."""
        for column in self.columns():
            del column[:count]
        self.version += 1
        self.members = sum(fold >= Fold.MEMBER for fold in self.folds)

    def split(self) -> LogBlock:
        """Cut off the second half and return it as a block of its own."""
        half = len(self) // 2
        other = LogBlock()
        for column, mine in zip(other.columns(), self.columns(), strict=True):
            column.extend(mine[half:])
        other.is_mixed = self.is_mixed
        for column in self.columns():
            del column[half:]
        self.version += 1
        self.members = sum(fold >= Fold.MEMBER for fold in self.folds)
        other.members = sum(fold >= Fold.MEMBER for fold in other.folds)
        return other

    def index_of(self, number: int) -> int | None:
        """Return the place of a row by its number, or None."""
        try:
            return self.numbers.index(number)
        except ValueError:
            return None


class BlockText(NamedTuple):
    """The texts of a block's rows in one piece, for searching.

    Attributes:
        data: The texts in small letters, as UTF-8, and maybe others between them.
        where: Returns where rows begin in it (ascending), where they end, and which rows these are;
            asked only once something was found.
    """

    data: bytes
    where: Callable[[], tuple[Sequence[int], Sequence[int], Sequence[int]]]

    def rows_holding(self, needle: bytes) -> set[int]:
        """Return the rows in whose bytes a needle is."""
        found: set[int] = set()
        data = self.data
        at = data.find(needle)
        if at < 0:
            return found
        starts, ends, rows = self.where()
        while at >= 0:
            row = bisect_right(starts, at) - 1
            if row >= 0 and at + len(needle) <= ends[row]:
                found.add(rows[row])
                at = data.find(needle, ends[row])
            else:
                at = data.find(needle, at + 1)
        return found


class LogLinesSource(Protocol):
    """A log that can be looked at."""

    arrived: int
    """How many rows ever came."""
    evicted: int
    """How many rows were forgotten."""

    @property
    def blocks(self) -> Sequence[LogBlock]:
        """The blocks of rows, oldest first."""
        ...

    @property
    def sources(self) -> Sequence[LogSource]:
        """Who wrote the lines, by number."""
        ...

    def __len__(self) -> int:
        """Return how many rows there are, as far as it is known."""
        ...

    def line(self, block: LogBlock, at: int) -> LogLine:
        """Return a row of a block with its text."""
        ...

    def block_text(self, block: LogBlock) -> BlockText:
        """Return the texts of a block in one piece, in small letters."""
        ...

    def fold_of(self, number: int) -> FoldInfo | None:
        """Return what a row stands for, if it stands for more than itself."""
        ...

    def hold(self, block: LogBlock | None) -> None:
        """Ask not to forget this block and later ones, as far as that can be done."""
        ...

    def load(self, block: LogBlock) -> None:
        """See that a block's columns are there."""
        ...

    def may_hold(self, block: LogBlock, needles: Sequence[bytes]) -> bool:
        """Whether words (in small letters) may be in a block, before it is loaded."""
        ...

    def find_block(self, number: int, micros: int) -> int | None:
        """Return the index of the block in which a row is or, if it was split, of one near it."""
        ...


class LineCache:
    """The lines that were asked for last, by number."""

    def __init__(self, most: int = CACHED_ROWS) -> None:
        self._most = most
        self._lines: OrderedDict[int, LogLine] = OrderedDict()

    def get(self, number: int) -> LogLine | None:
        """Return a line, or None."""
        line = self._lines.get(number)
        if line is not None:
            self._lines.move_to_end(number)
        return line

    def put(self, line: LogLine) -> None:
        """Keep a line for a while, unless it is a very long one."""
        if len(line.text) > 100_000:
            return
        self._lines[line.number] = line
        if len(self._lines) > self._most:
            self._lines.popitem(last=False)
