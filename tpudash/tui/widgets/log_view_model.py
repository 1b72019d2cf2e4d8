"""Which lines a log view shows and where it stands: no drawing here, and no Textual."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from tpudash.tui.widgets.log_view_filter import LogFilter
from tpudash.tui.widgets.log_view_text import LogRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.store.log_ring import LogRing

SLICE: Final = 4_000
"""Lines that are searched in one go, so that a filter never holds up a key."""
HELD_FACTOR: Final = 2
"""A view that stands still keeps at most this many times what the ring holds."""


class LogLines:
    """The lines of a ring, those of them that are shown, and the place of the view among them.

    While the view stands still, `top` goes on meaning the same line: whatever is added, put in
    between or thrown away elsewhere, and although the ring may have forgotten the line itself.

    Attributes:
        shown: The lines that pass the filter and the scope, oldest first.
        top: Index in `shown` of the line at the top of the view.
        unsearched: How many of the oldest lines the filter did not look at yet.
    """

    def __init__(self, ring: LogRing) -> None:
        self._ring = ring
        self._rows: list[LogRow] = []
        self._arrived = 0
        self._filter = LogFilter()
        self._scope: Callable[[LogRow], bool] | None = None
        self.unsearched = 0
        self._anchor: LogRow | None = None
        self.shown: list[LogRow] = []
        self.top = 0

    @property
    def is_searching(self) -> bool:
        """Whether older lines were not yet looked at; `search_on` looks at some more."""
        return self.unsearched > 0

    @property
    def filter(self) -> LogFilter:
        """What the user typed."""
        return self._filter

    @property
    def total(self) -> int:
        """How many lines there are, shown or not."""
        return len(self._rows)

    @property
    def unread(self) -> int:
        """How many entries arrived that a standing view did not take in any more."""
        return self._ring.arrived - self._arrived

    def sync(self, *, standing: bool) -> bool:
        """Take in what the ring got since the last time.

        Args:
            standing: Whether the view stands still, so that no line of it may move or go.

        Returns:
            Whether anything changed.
        """
        before = (self._arrived, len(self._rows))
        limit = HELD_FACTOR * max(len(self._ring), 1)
        if not (standing and len(self._rows) > limit and len(self._ring) > 1):
            self._take_tail()
        self._drop_head(standing=standing)
        return before != (self._arrived, len(self._rows))

    def reload(self) -> None:
        """Take everything from the ring anew, as it is now."""
        self._rows = []
        self._arrived = 0
        self.unsearched = 0
        self.shown = []
        self.top = 0
        self.sync(standing=False)

    def set_filter(self, found: LogFilter) -> None:
        """Show other lines; `top` becomes the line nearest to the one before."""
        self._filter = found
        self._choose()

    def set_scope(self, scope: Callable[[LogRow], bool] | None) -> None:
        """Show only lines of a run or a node, before any filter."""
        self._scope = scope
        self._choose()

    def find(self, test: Callable[[LogRow], bool], start: int, step: int) -> int | None:
        """Return the index of the next shown line that passes a test, or None.

        Args:
            test: What to look for.
            start: Index to begin at.
            step: 1 to look towards newer lines, -1 towards older ones.
        """
        indexes = range(start, len(self.shown) if step > 0 else -1, step)
        return next((at for at in indexes if test(self.shown[at])), None)

    def _passes(self, row: LogRow) -> bool:
        return (self._scope is None or self._scope(row)) and self._filter.accepts(row)

    def _passing(self, rows: list[LogRow]) -> list[LogRow]:
        if self._scope is None and not self._filter.terms:
            return rows
        return [row for row in rows if self._passes(row)]

    def _choose(self) -> None:
        """Begin to search all lines, the newest first."""
        self._anchor = self.shown[self.top] if self.top < len(self.shown) else None
        self.shown = []
        self.top = 0
        self.unsearched = len(self._rows)
        self.search_on()

    def search_on(self) -> None:
        """Look at the next older lines; `top` comes as near to its old place as it can."""
        start = max(0, self.unsearched - SLICE)
        if self._scope is None and not self._filter.terms:
            start = 0
        found = self._passing(self._rows[start : self.unsearched])
        self.shown = [*found, *self.shown]
        self.unsearched = start
        anchor = self._anchor
        if anchor is None:
            self.top = 0
            return
        moment = anchor.entry.timestamp
        at = bisect_left(self.shown, moment, key=lambda row: row.entry.timestamp)
        same = (
            place
            for place in range(at, len(self.shown))
            if self.shown[place] is anchor or self.shown[place].entry.timestamp != moment
        )
        exact = next(same, at)
        is_there = exact < len(self.shown) and self.shown[exact] is anchor
        self.top = min(exact if is_there else at, max(0, len(self.shown) - 1))

    def _take_tail(self) -> None:
        """Put the newest part of the ring in place of the part of it that was known before."""
        if self._arrived == self._ring.arrived:
            return
        tail = self._ring.tail_since(self._arrived)
        known = sum(number < self._arrived for number, _ in tail)
        replaced = {row.number: row for row in self._rows[len(self._rows) - known :]}
        del self._rows[len(self._rows) - known :]
        self.unsearched = min(self.unsearched, len(self._rows))
        anchor = self.shown[self.top].number if self.top < len(self.shown) else None
        while self.shown and self.shown[-1].number in replaced:
            self.shown.pop()
        fresh = [replaced.get(number) or LogRow(number, entry) for number, entry in tail]
        passing = self._passing(fresh)
        if anchor in replaced:
            beyond = (at for at, row in enumerate(passing) if row.number == anchor)
            self.top = len(self.shown) + next(beyond, 0)
        self._rows += fresh
        self.shown += passing
        self._arrived = self._ring.arrived

    def _drop_head(self, *, standing: bool) -> None:
        """Forget what the ring forgot, but no line at or below the top of a standing view."""
        excess = len(self._rows) - len(self._ring)
        if excess <= 0:
            return
        if standing and self.shown:
            excess = min(excess, self._index_of_top())
        gone = {row.number for row in self._rows[:excess]}
        del self._rows[:excess]
        self.unsearched = max(0, self.unsearched - excess)
        count = 0
        while count < len(self.shown) and self.shown[count].number in gone:
            count += 1
        del self.shown[:count]
        self.top = max(0, self.top - count)

    def _index_of_top(self) -> int:
        """Return the place of the view's top line among all lines."""
        top = self.shown[min(self.top, len(self.shown) - 1)]
        at = bisect_left(self._rows, top.entry.timestamp, key=lambda row: row.entry.timestamp)
        while at < len(self._rows) and self._rows[at] is not top:
            at += 1
        return at
