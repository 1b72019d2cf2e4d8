"""A scroll bar of whole cells: no partial blocks, which some terminals and locales garble."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBarRender


class SolidScrollBarRender(ScrollBarRender):
    """Draws the thumb with blanks alone."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8
