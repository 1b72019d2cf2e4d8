"""One line of text that repaints only when it changes, and never asks for a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.app import RenderResult


class Line(Widget):
    """A single line; what does not fit is cut off."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._text = Text()

    @property
    def text(self) -> Text:
        """What is shown."""
        return self._text

    def show(self, text: Text) -> bool:
        """Show another text; returns whether anything had to be repainted."""
        text.no_wrap = True
        text.overflow = "ellipsis"
        if text.plain == self._text.plain and text.spans == self._text.spans:
            return False
        self._text = text
        self.refresh()
        return True

    def render(self) -> RenderResult:
        """Return the text."""
        return self._text
