"""One block of a log as a view shows it: which of its rows, after scope, filter and folding."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tpudash.logtext.dumps import Fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.store.log_lines import LogBlock
    from tpudash.tui.widgets.log_view_match import Matcher

LONGEST_WAY_S: Final = 0.5


@dataclass(slots=True)
class Choice:
    """What decides whether a row is shown.

    Attributes:
        matcher: Scope and filter.
        is_by_text: The filter asks for something in the text, so members of dumps count.
        is_by_worker: The filter asks for some workers, so what others said too counts.
        folding: Whether folds are closed.
        context: How many rows beside those that were asked for are shown too.
        revealed: Rows that are shown although they are folded away, by number.
    """

    matcher: Matcher
    is_by_text: bool = False
    is_by_worker: bool = False
    folding: bool = True
    context: int = 0
    revealed: set[int] = field(default_factory=set)

    @property
    def is_everything(self) -> bool:
        """Whether every row of a block without folds is shown."""
        return self.matcher.is_trivial

    def is_hidden(self, block: LogBlock, at: int) -> bool:
        """Whether a row is folded away."""
        fold = block.folds[at]
        if fold < Fold.MEMBER or not self.folding:
            return False
        if fold == Fold.SAME:
            return not self.is_by_worker and block.numbers[at] not in self.revealed
        return not self.is_by_text and block.numbers[at] not in self.revealed


class Part:
    """The rows of one block that are shown.

    Attributes:
        shown: Their places in the block, ascending; None for all of them.
        hits: Those that were asked for, where rows beside them are shown too; else None.
        is_searched: Whether the block was looked at.
    """

    __slots__ = ("_seen", "_version", "block", "hits", "is_searched", "shown")

    def __init__(self, block: LogBlock) -> None:
        self.block = block
        self.shown: array[int] | None = None
        self.hits: frozenset[int] | None = None
        self.is_searched = False
        self._seen = 0
        self._version = -1

    def __len__(self) -> int:
        if not self.is_searched:
            return 0
        return self._seen if self.shown is None else len(self.shown)

    @property
    def is_stale(self) -> bool:
        """Whether the block has changed since it was looked at."""
        return self._version != self.block.version or self._seen != len(self.block)

    def forget(self) -> None:
        """Make it unsearched again."""
        self.is_searched = False
        self.shown = None
        self.hits = None

    def place(self, at: int) -> int:
        """Return the place in the block of a shown row."""
        return at if self.shown is None else self.shown[at]

    def index_at(self, place: int) -> int:
        """Return the index of the first shown row at this place of the block or behind it."""
        if self.shown is None:
            return min(place, self._seen)
        return bisect_left(self.shown, place)

    def shows(self, place: int) -> bool:
        """Whether the row at this place is shown."""
        if self.shown is None:
            return place < self._seen
        at = bisect_left(self.shown, place)
        return at < len(self.shown) and self.shown[at] == place

    def is_context(self, place: int) -> bool:
        """Whether a row is shown only because it stands beside one that was asked for."""
        return self.hits is not None and place not in self.hits

    def look(self, choice: Choice) -> None:
        """Bring it up to date with its block."""
        block, start = self.block, 0
        is_grown = self.is_searched and self._version == block.version and not choice.context
        if is_grown:
            start = self._seen
        self._version = block.version
        if choice.is_everything and not (block.members and choice.folding):
            self.shown = None
            self.hits = None
        else:
            before = self._before(start) if is_grown else array("I")
            before.extend(self._chosen(choice, start))
            self.shown = before
        self._seen = len(block)
        self.is_searched = True

    def look_past(self) -> None:
        """Take it that none of the block's rows is shown."""
        self._version, self._seen = self.block.version, len(self.block)
        self.shown, self.hits = array("I"), None
        self.is_searched = True

    def _before(self, start: int) -> array[int]:
        return array("I", range(start)) if self.shown is None else self.shown

    def _chosen(self, choice: Choice, start: int) -> Iterable[int]:
        block = self.block
        found = choice.matcher.rows(block, start)
        if block.members:
            found = [at for at in found if not choice.is_hidden(block, at)]
        self.hits = None
        if not choice.context:
            return found
        self.hits = frozenset(found)
        return self._with_context(choice, found)

    def _with_context(self, choice: Choice, found: Sequence[int]) -> list[int]:
        block = self.block
        base = [at for at in choice.matcher.of_scope(block) if not choice.is_hidden(block, at)]
        index = {place: at for at, place in enumerate(base)}
        wanted: set[int] = set(found)
        for place in found:
            at = index.get(place)
            if at is not None:
                wanted.update(base[max(0, at - choice.context) : at + choice.context + 1])
        return sorted(wanted)


class Way:
    """What was looked at on the way to the next row, and until when that may go on."""

    __slots__ = ("looked_at", "until")

    def __init__(self) -> None:
        self.looked_at = 0
        self.until = perf_counter() + LONGEST_WAY_S
