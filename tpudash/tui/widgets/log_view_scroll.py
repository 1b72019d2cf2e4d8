"""Where a log view stands: the line at the top, and how many of its wrapped parts are above."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.widgets.log_view_model import LogLines, Spot
    from tpudash.tui.widgets.log_view_text import LogRow


class LogScroll:
    """Moves through lines of different heights; measures only those that it passes.

    Args:
        lines: The lines; `lines.top` is the one at the top.
        height_of: Returns how many rows of the screen a line takes.

    Attributes:
        skip: Rows of the top line that are hidden above.
    """

    def __init__(self, lines: LogLines, height_of: Callable[[LogRow], int]) -> None:
        self._lines = lines
        self._height_of = height_of
        self.skip = 0

    def move(self, count: int) -> None:
        """Move by so many rows; negative is towards older lines."""
        lines = self._lines
        top = lines.top
        if top is None:
            return
        skip = self.skip + count
        while skip < 0 and (older := lines.before(top)) is not None:
            top = older
            skip += self._height(top)
        while skip >= (height := self._height(top)) and (newer := lines.after(top)) is not None:
            skip -= height
            top = newer
        lines.top, self.skip = top, max(0, skip)

    def go_to(self, spot: Spot | None) -> None:
        """Put a line at the top."""
        self._lines.top, self.skip = spot, 0

    def go_to_end(self, room: int) -> None:
        """Stand so that the newest line is the last one of a page of so many rows."""
        self._lines.top, self.skip = self._end(room)

    def clamp(self, room: int) -> bool:
        """Never stand beyond the last page; returns whether it stands on it."""
        top = self._lines.top
        end, skip = self._end(room)
        if top is None or end is None or (top, self.skip) >= (end, skip):
            self._lines.top, self.skip = end, skip
            return True
        return False

    def _height(self, spot: Spot) -> int:
        return self._height_of(self._lines.row(spot))

    def _end(self, room: int) -> tuple[Spot | None, int]:
        room = max(1, room)
        spot = self._lines.last()
        first = spot
        while spot is not None:
            height = self._height(spot)
            if height >= room:
                return spot, height - room
            room -= height
            first = spot
            spot = self._lines.before(spot)
        return first, 0
