"""Choosing which lines a view shows; a look through many lines goes on while keys are heard."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from tpudash.tui.widgets.log_view_filter import LogFilter, parse_filter
from tpudash.tui.widgets.log_view_seek import SEARCH_PAUSE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.timer import Timer

    from tpudash.store.log_lines import LogSource
    from tpudash.tui.widgets.log_view import LogView

SHOW_FOUND_S: Final = 0.25
"""How often what was found so far is painted while a look through all lines goes on."""
MOST_CONTEXT: Final = 9


class LogChoices:
    """Scope, filter, folding and context of one view."""

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._timer: Timer | None = None
        self._shown_at = 0.0

    def show_matching(self, text: str) -> LogFilter:
        """Show only lines that pass a filter as it was typed."""
        found = parse_filter(text)
        self._view.lines.set_filter(found)
        self._show()
        return found

    def show_scope(
        self, scope: Callable[[LogSource], bool] | None, *, is_one_run: bool = False
    ) -> None:
        """Show only lines of something, before any filter.

        Args:
            scope: Whose lines to show, or None for all.
            is_one_run: Whether these are lines of one run.
        """
        self._view.is_one_run = is_one_run
        self._view.lines.set_scope(scope)
        self._show()

    def toggle_folding(self) -> None:
        """Open all folds, or close them."""
        lines = self._view.lines
        lines.set_folding(on=not lines.folding)
        self._show()

    def change_context(self, step: int) -> int:
        """Show more or fewer lines beside those that pass the filter; returns how many."""
        lines = self._view.lines
        rows = min(MOST_CONTEXT, max(0, lines.context + step))
        lines.set_context(rows)
        self._show()
        return rows

    def keep_looking(self) -> None:
        """Look at older lines once pending keys were heard, if there are any left."""
        view = self._view
        if view.lines.is_searching and self._timer is None and view.is_attached:
            self._timer = view.set_timer(SEARCH_PAUSE_S, self._look_on)

    def _show(self) -> None:
        self._view.show_chosen()
        self.keep_looking()

    def _look_on(self) -> None:
        self._timer = None
        lines = self._view.lines
        before = lines.top
        lines.search_on()
        now = monotonic()
        is_due = now - self._shown_at >= SHOW_FOUND_S or not lines.is_searching
        if is_due or lines.top != before:
            self._shown_at = now
            self._view.show_chosen()
        self.keep_looking()
