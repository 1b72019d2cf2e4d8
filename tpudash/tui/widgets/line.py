"""One line of text that repaints only when it changes, and never asks for a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.geometry import Region
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.app import RenderResult


class Line(Widget):
    """A single line that ends in an ellipsis where it is cut, unless its style has it wrap."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
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
        before, self._text = self._text, text
        if text.plain == before.plain and text.spans == before.spans:
            return False
        changed = None if self.size.height > 1 else _changed_cells(before, text)
        if changed is None:
            self.refresh()
        else:
            self.refresh(Region(changed.start, 0, len(changed), 1))
        return True

    def render(self) -> RenderResult:
        """Return the text."""
        return self._text


def _changed_cells(before: Text, after: Text) -> range | None:
    """Return the cells that differ where only characters do; None where more does."""
    old, new = before.plain, after.plain
    if len(old) != len(new) or before.spans != after.spans:
        return None
    if cell_len(old) != len(old) or cell_len(new) != len(new):
        return None
    differing = [at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    return range(differing[0], differing[-1] + 1)
