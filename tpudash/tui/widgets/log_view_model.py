"""Which lines a log view shows and where it stands: no drawing here, and no Textual."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from tpudash.logtext.dumps import Fold
from tpudash.tui.widgets.log_view_filter import LogFilter
from tpudash.tui.widgets.log_view_match import Matcher
from tpudash.tui.widgets.log_view_part import Choice, Part, Way
from tpudash.tui.widgets.log_view_text import LogRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tpudash.store.log_lines import LogLinesSource, LogSource

SLICE_S: Final = 0.02
"""How long a search goes on before keys are heard again."""
MEMBER_PARTS: Final = 8
READY_PARTS: Final = 8
"""Blocks that are looked at on the way while moving, before it is left to the search."""


class Spot(NamedTuple):
    """A place among the shown rows: the part, and the row in it."""

    part: int
    at: int


class LogLines:
    """The lines of a log, those of them that are shown, and the place of the view among them.

    While the view stands still, `top` goes on meaning the same line: whatever is added, put in
    between or thrown away elsewhere.

    Attributes:
        parts: The log's blocks with their shown rows, oldest first.
        is_lost: The line at the top was forgotten by the log, and `top` is another one now.
    """

    def __init__(self, source: LogLinesSource) -> None:
        self.source = source
        self.parts: list[Part] = []
        self._top: Spot | None = None
        self._top_number = 0
        self.is_lost = False
        self._filter = LogFilter()
        self._scope: Callable[[LogSource], bool] | None = None
        self._choice = Choice(Matcher(source, self._filter))
        self._context = 0
        self._anchor: tuple[Part, int] | None = None
        self._wish: tuple[Part, int] | None = None
        """Where the view would stand if the filter let it; kept until the user moves."""
        self._is_pending = False
        self._arrived = -1
        self._evicted = -1

    # What is shown.

    @property
    def filter(self) -> LogFilter:
        """What the user typed."""
        return self._filter

    @property
    def folding(self) -> bool:
        """Whether dumps and what all workers say are folded."""
        return self._choice.folding

    @property
    def context(self) -> int:
        """How many lines beside those that pass the filter are shown too."""
        return self._context

    @property
    def total(self) -> int:
        """How many lines there are, shown or not."""
        return len(self.source)

    @property
    def count(self) -> int:
        """How many lines are shown, as far as it is known."""
        return sum(map(len, self.parts))

    @property
    def is_partial(self) -> bool:
        """Whether there are lines that nobody has looked at, so that counts are too low."""
        return any(not part.is_searched for part in self.parts)

    @property
    def is_searching(self) -> bool:
        """Whether older lines were not yet looked at; `search_on` looks at some more."""
        return self._is_pending

    @property
    def top(self) -> Spot | None:
        """The row at the top of the view, None if there is none."""
        return self._top

    @top.setter
    def top(self, spot: Spot | None) -> None:
        self._wish = None
        self._stand(spot)

    def _stand(self, spot: Spot | None) -> None:
        self._top = self._valid(spot)
        if self._top is not None:
            part = self.parts[self._top.part]
            self.source.load(part.block)
            self._top_number = part.block.numbers[part.place(self._top.at)]

    def set_filter(self, found: LogFilter) -> None:
        """Show other lines; `top` becomes the line nearest to the one before."""
        self._filter = found
        self._choose()

    def set_scope(self, scope: Callable[[LogSource], bool] | None) -> None:
        """Show only lines of some sources, before any filter."""
        self._scope = scope
        self._choose()

    def set_folding(self, *, on: bool) -> None:
        """Close or open all folds."""
        self._choice.folding = on
        self._choice.revealed.clear()
        self._choose()

    def set_context(self, rows: int) -> None:
        """Show so many lines beside those that pass the filter."""
        self._context = rows
        self._choose()

    def _choose(self) -> None:
        """Begin to look at all blocks anew, the newest first."""
        before = self._choice
        self._choice = Choice(
            Matcher(self.source, self._filter, self._scope),
            is_by_text=self._filter.looks_at_text,
            is_by_worker=self._filter.is_of_worker,
            folding=before.folding,
            context=self._context if self._filter.terms else 0,
            revealed=before.revealed,
        )
        self._remember()
        self._wish = self._wish or self._anchor
        for part in self.parts:
            part.forget()
        self.search_on()

    def search_on(self) -> None:
        """Look at the next older blocks, for a short while."""
        end = perf_counter() + SLICE_S
        self._remember()
        for part in reversed(self.parts):
            if not part.is_searched and self._is_wanted(part):
                self.look(part)
                if perf_counter() > end:
                    break
        self._note_pending()
        self._restore()

    def _is_wanted(self, part: Part) -> bool:
        """Whether a block is to be looked at without being asked for.

        Where nothing is filtered, a block that would have to be read first can wait.
        """
        return part.block.is_ready or bool(self._filter.terms) or self._scope is not None

    def _note_pending(self) -> None:
        self._is_pending = any(
            not part.is_searched and self._is_wanted(part) for part in self.parts
        )

    def look(self, part: Part) -> None:
        """Look at a block now."""
        needles = self._choice.matcher.needles
        if needles and not self._choice.context and not self.source.may_hold(part.block, needles):
            part.look_past()
            return
        self.source.load(part.block)
        part.look(self._choice)

    # What arrives and what is forgotten.

    def sync(self, *, standing: bool) -> bool:
        """Take in what the log got since the last time.

        Args:
            standing: Whether the view stands still, so that no line of it may move or go.

        Returns:
            Whether anything changed.
        """
        now = (self.source.arrived, self.source.evicted)
        if now == (self._arrived, self._evicted):
            return False
        self._arrived, self._evicted = now
        self._remember()
        known = {id(part.block): part for part in self.parts}
        self.parts = [known.get(id(block)) or Part(block) for block in self.source.blocks]
        for part in self.parts:
            if part.is_searched and part.is_stale:
                self.look(part)
        for part in self.parts[-READY_PARTS:]:
            if not part.is_searched and self._is_wanted(part):
                self.look(part)
        self._note_pending()
        self._restore()
        self.hold(standing=standing)
        return True

    def hold(self, *, standing: bool) -> None:
        """Ask the log to keep what a standing view stands on."""
        block = self.parts[self.top.part].block if standing and self.top else None
        self.source.hold(block)

    def _remember(self) -> None:
        """Note which line is at the top, before places change."""
        spot = self._valid(self._top)
        if spot is not None:
            self._anchor = (self.parts[spot.part], self._top_number)

    def _restore(self) -> None:
        """Make `top` the line that was noted, or the one that is nearest to it now."""
        anchor, self._anchor = self._wish or self._anchor, None
        if anchor is None:
            self._stand(self._valid(self._top) or self.first())
            return
        found = self._find(*anchor)
        self.is_lost = found is None
        if found is None:
            self.top = self.first()
            return
        index, place = found
        self.make_ready(index)
        at = self.parts[index].index_at(place)
        self._stand(self.after(Spot(index, at - 1)) or self.before(Spot(index, at)))

    def _find(self, part: Part, number: int) -> tuple[int, int] | None:
        """Return block and place of a row that was in a part's block; it may have been split."""
        if part not in self.parts:
            return None
        start = self.parts.index(part)
        for index in range(start, min(start + 3, len(self.parts))):
            self.source.load(self.parts[index].block)
            place = self.parts[index].block.index_of(number)
            if place is not None:
                return index, place
        return None

    # Moving among the shown lines.

    def _valid(self, spot: Spot | None) -> Spot | None:
        if spot is None or spot.part >= len(self.parts):
            return None
        return spot if 0 <= spot.at < len(self.parts[spot.part]) else None

    def first(self) -> Spot | None:
        """Return the oldest shown row."""
        return self.after(Spot(0, -1)) if self.parts else None

    def last(self) -> Spot | None:
        """Return the newest shown row."""
        if not self.parts:
            return None
        index = len(self.parts) - 1
        self.make_ready(index)
        return self.before(Spot(index, len(self.parts[index])))

    def after(self, spot: Spot) -> Spot | None:
        """Return the next newer shown row."""
        index, at, way = spot.part, spot.at + 1, Way()
        while index < len(self.parts):
            self._pass(index, way)
            if at < len(self.parts[index]):
                return Spot(index, at)
            index, at = index + 1, 0
        return None

    def before(self, spot: Spot) -> Spot | None:
        """Return the next older shown row."""
        index, at, way = spot.part, spot.at - 1, Way()
        while at < 0:
            index -= 1
            if index < 0:
                return None
            self._pass(index, way)
            at = len(self.parts[index]) - 1
        return Spot(index, at)

    def _pass(self, index: int, way: Way) -> None:
        """Look at a block on the way, unless that is left to the search.

        A block that no search will look at is never passed over: a file has blocks without any
        row where a line is longer than a block, and many of them where it is much longer.
        """
        part = self.parts[index]
        if part.is_searched:
            return
        is_left = way.looked_at >= READY_PARTS and self._is_wanted(part)
        if is_left or perf_counter() > way.until:
            return
        self.look(part)
        way.looked_at += 1

    def make_ready(self, index: int) -> bool:
        """Look at a block if that was not done yet; returns whether it was necessary."""
        part = self.parts[index]
        if part.is_searched:
            return False
        self.look(part)
        return True

    def index_of(self, part: Part) -> int | None:
        """Return the index of a part, None if its block is gone."""
        return self.parts.index(part) if part in self.parts else None

    def row(self, spot: Spot) -> LogRow:
        """Return a shown row."""
        part = self.parts[spot.part]
        place = part.place(spot.at)
        line = self.source.line(part.block, place)
        fold = self.source.fold_of(line.number) if self.folding else None
        return LogRow(line, fold, is_context=part.is_context(place))

    def rows_from(self, spot: Spot | None) -> Iterator[tuple[Spot, LogRow]]:
        """Yield shown rows from a place on, towards newer ones."""
        while spot is not None:
            yield spot, self.row(spot)
            spot = self.after(spot)

    def count_after(self, spot: Spot) -> int:
        """Return how many shown rows are newer."""
        rest = len(self.parts[spot.part]) - 1 - spot.at
        return rest + sum(map(len, self.parts[spot.part + 1 :]))

    def fraction_before(self, spot: Spot) -> float:
        """Return which share of the log is older, each block counted alike."""
        part = self.parts[spot.part]
        return (spot.part + spot.at / max(1, len(part))) / max(1, len(self.parts))

    def spot_of(self, number: int, near_micros: int) -> Spot | None:
        """Return the place of a row, shown or revealed for it; None if a filter leaves it out."""
        index = self.source.find_block(number, near_micros)
        if index is None or index >= len(self.parts):
            return None
        block = self.parts[index].block
        self.source.load(block)
        place = block.index_of(number)
        if place is None:
            return None
        spot = self.reveal(index, place)
        return spot if self.parts[index].shows(place) else None

    def reveal(self, index: int, place: int) -> Spot:
        """Return the place of a row, which is shown from now on even if it is folded away."""
        part = self.parts[index]
        self.make_ready(index)
        if not part.shows(place):
            self.source.load(part.block)
            self._choice.revealed.add(part.block.numbers[place])
            part.forget()
            self.look(part)
        return Spot(index, part.index_at(place))

    def members_of(self, row: LogRow) -> list[str]:
        """Return the texts of a dump's lines that are folded behind a row."""
        wanted = row.fold.members if row.fold else 0
        spot = self.spot_of(row.number, row.line.micros) if wanted else None
        found: list[str] = []
        if spot is None:
            return found
        start = self.parts[spot.part].place(spot.at) + 1
        for part in self.parts[spot.part : spot.part + MEMBER_PARTS]:
            block = part.block
            self.source.load(block)
            for at in range(start, len(block)):
                is_same = block.sources[at] == row.line.source.number
                if is_same and block.folds[at] == Fold.MEMBER:
                    found.append(self.source.line(block, at).text)
                    if len(found) >= wanted:
                        return found
            start = 0
        return found

    def allowed(self, part: Part, places: Sequence[int]) -> Sequence[int]:
        """Return those of some rows of a block that pass scope and filter, folded away or not."""
        matcher = self._choice.matcher
        self.source.load(part.block)
        if matcher.is_trivial or not places:
            return places
        passing = set(matcher.rows(part.block))
        return [place for place in places if place in passing]
