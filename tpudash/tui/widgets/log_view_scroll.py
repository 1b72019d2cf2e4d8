"""Where a log view stands: the line at the top, and how many of its wrapped parts are above."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.widgets.log_view_model import LogLines
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
        shown = self._lines.shown
        if not shown:
            return
        top, skip = min(self._lines.top, len(shown) - 1), self.skip + count
        while skip < 0 and top > 0:
            top -= 1
            skip += self._height_of(shown[top])
        while top < len(shown) - 1 and skip >= (height := self._height_of(shown[top])):
            skip -= height
            top += 1
        self._lines.top, self.skip = top, max(0, skip)

    def go_to(self, index: int) -> None:
        """Put a line at the top."""
        self._lines.top, self.skip = index, 0

    def go_to_end(self, room: int) -> None:
        """Stand so that the newest line is the last one of a page of so many rows."""
        self._lines.top, self.skip = self._end(room)

    def clamp(self, room: int) -> bool:
        """Never stand beyond the last page; returns whether it stands on it."""
        end = self._end(room)
        if (self._lines.top, self.skip) >= end:
            self._lines.top, self.skip = end
            return True
        return False

    def _end(self, room: int) -> tuple[int, int]:
        room = max(1, room)
        for at in range(len(self._lines.shown) - 1, -1, -1):
            height = self._height_of(self._lines.shown[at])
            if height >= room:
                return (at, height - room)
            room -= height
        return (0, 0)
