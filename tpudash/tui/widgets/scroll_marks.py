"""A scroll bar of one column, drawn as text so that moving it costs no layout."""

from __future__ import annotations

from typing import Final

THUMB: Final = ("▐", "#")


def scroll_marks(height: int, *, total: int, first: int, last: int, plain: bool) -> list[str]:
    """Return one character for each row of the screen; blanks where everything is visible.

    Args:
        height: Rows of the screen.
        total: How many lines there are.
        first: Index of the first visible line.
        last: Index of the last visible line.
        plain: Whether to draw with ASCII only.
    """
    visible = last - first + 1
    if visible >= total or height <= 0:
        return [" "] * height
    length = max(1, height * visible // total)
    room = height - length
    start = min(room, round(room * first / max(1, total - visible)))
    return [THUMB[plain] if start <= at < start + length else " " for at in range(height)]
