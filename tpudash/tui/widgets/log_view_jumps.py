"""Going to lines of some kind: errors, steps, matches of a search, bookmarks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tpudash.tui.widgets.log_view_filter import LogFilter, parse_search
from tpudash.tui.widgets.log_view_find import find_mark, find_text
from tpudash.tui.widgets.log_view_model import Spot

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.widgets.log_view import LogView


class LogJumps:
    """What moves a view to a line; a search through many lines goes on while keys are heard."""

    def __init__(self, view: LogView) -> None:
        self._view = view

    def to_mark(self, what: str, step: int, missed: Callable[[], None] | None = None) -> None:
        """Go to the next line of some kind (`MARK_TESTS`): newer for 1, older for -1.

        `missed` is called if there is none.
        """
        start = self._start(step)
        if start is not None:
            self._view.seeker.seek(find_mark(self._view.lines, what, start, step), missed)

    def begin_search(self, text: str) -> LogFilter:
        """Highlight what is searched, wherever it is in sight."""
        self._view.search = parse_search(text)
        self._view.repaint()
        return self._view.search

    def to_match(self, step: int, missed: Callable[[], None] | None = None) -> None:
        """Go to the next line that the search finds, also if it is folded away."""
        view = self._view
        start = self._start(step)
        if start is not None and view.search.terms:
            view.seeker.seek(find_text(view.lines, view.search, start, step), missed)

    def to_line(self, number: int, micros: int) -> bool:
        """Go to a line by its number and time; False if it is not held any more."""
        spot = self._view.lines.spot_of(number, micros)
        if spot is not None:
            self._view.show_spot(spot)
        return spot is not None

    def toggle_bookmark(self) -> bool | None:
        """Mark the line that is meant, or unmark it; None if there is no line."""
        row, marks = self._view.current, self._view.bookmarks
        if row is None:
            return None
        is_new = row.number not in marks
        if is_new:
            marks[row.number] = row.line.micros
        else:
            del marks[row.number]
        self._view.repaint()
        return is_new

    def to_bookmark(self) -> bool:
        """Go to the next newer bookmark, after the newest to the oldest; False without one."""
        row = self._view.current
        here = (row.line.micros, row.number) if row else (0, 0)
        marks = sorted((micros, number) for number, micros in self._view.bookmarks.items())
        ordered = [*(mark for mark in marks if mark > here), *marks]
        return any(self.to_line(number, micros) for micros, number in ordered)

    def _start(self, step: int) -> Spot | None:
        """Return where to look from: the marked line if it can be seen, else the edge."""
        view = self._view
        view.settle()
        top, last = view.lines.top, view.last_visible
        if top is None or last is None:
            return None
        if view.marked is not None:
            for spot, row in islice(view.lines.rows_from(top), view.size.height):
                if row.number == view.marked.number:
                    return spot
        if step < 0:
            return Spot(last.part, last.at + 1)
        return Spot(top.part, top.at - 1)
