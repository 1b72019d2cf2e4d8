"""Runs a search through a log in slices, between which keys are heard."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.timer import Timer

    from tpudash.tui.widgets.log_view import LogView
    from tpudash.tui.widgets.log_view_model import Spot

SLICE_S: Final = 0.04
SEARCH_PAUSE_S: Final = 0.002


class LogSeeker:
    """At most one search at a time; a new one ends the one before.

    Attributes:
        is_busy: Whether it goes on.
    """

    def __init__(self, view: LogView) -> None:
        self._view = view
        self._search: Iterator[Spot | None] | None = None
        self._missed: Callable[[], None] | None = None
        self._timer: Timer | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a search goes on."""
        return self._search is not None

    def seek(self, search: Iterator[Spot | None], missed: Callable[[], None] | None) -> None:
        """Look for a line and go there.

        Args:
            search: Yields None as long as nothing was found, and then the place.
            missed: Called when there is no such line.
        """
        self.stop()
        self._search, self._missed = search, missed
        self._go_on()

    def stop(self) -> None:
        """Give up what is being looked for."""
        self._search = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _go_on(self) -> None:
        self._timer = None
        search = self._search
        if search is None:
            return
        end = perf_counter() + SLICE_S
        for spot in search:
            if spot is not None:
                self._search = None
                self._view.show_spot(spot)
                return
            if perf_counter() > end:
                self._timer = self._view.set_timer(SEARCH_PAUSE_S, self._go_on)
                self._view.post_message(self._view.Changed())
                return
        self._search = None
        if self._missed is not None:
            self._missed()
        self._view.post_message(self._view.Changed())
