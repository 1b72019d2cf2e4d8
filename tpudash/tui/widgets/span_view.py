"""Rows of styled text that repaint only the cells that changed, without any layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tpudash.tui.widgets.log_view_text import cut_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.tui.pane import HostApp


class Span(NamedTuple):
    """A piece of a row.

    Attributes:
        text: Harmless text, without line breaks.
        variable: The theme variable that colours it, or "" for the usual colour.
    """

    text: str
    variable: str = ""
    bold: bool = False


Spans: TypeAlias = tuple[Span, ...]


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly so many cells: cut with an ellipsis, or filled with blanks."""
    length = cell_len(text)
    if length > width:
        text = cut_cells(text, width - 1) + "…" if width > 1 else cut_cells(text, width)
        length = cell_len(text)
    blanks = " " * (width - length)
    return blanks + text if right else text + blanks


def cut_spans(spans: Spans, width: int) -> Spans:
    """Return a row in exactly so many cells."""
    cut = []
    room = width
    for span in spans:
        length = cell_len(span.text)
        if length > room:
            span = span._replace(text=fit(span.text, room))  # noqa: PLW2901
            length = room
        room -= length
        if length:
            cut.append(span)
    return (*cut, Span(" " * room)) if room > 0 else tuple(cut)


def wrap_words(text: str, width: int) -> list[str]:
    """Return a text as lines of at most so many cells, broken at blanks where that is possible."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word if cell_len(word) <= width else fit(word, width))
    return lines


class SpanView(Widget):
    """Shows rows that a function draws for a size, and repaints what differs from before.

    Args:
        draw: Returns the rows for a width and a height.
    """

    DEFAULT_CSS = "SpanView { height: 1fr; width: 1fr; }"

    def __init__(
        self, draw: Callable[[int, int], Sequence[Spans]], *, classes: str | None = None
    ) -> None:
        super().__init__(classes=classes)
        self._draw = draw
        self._rows: list[Spans] = []
        self._styles: dict[tuple[str, bool], Style] = {}

    @property
    def rows(self) -> Sequence[Spans]:
        """What is shown now."""
        return self._rows

    def sync(self) -> int:
        """Draw again; returns how many rows had to be repainted."""
        width, height = self.size
        rows = list(self._draw(width, height))[:height] if width and height else []
        before, self._rows = self._rows, rows
        count = 0
        for y in range(max(len(before), len(rows))):
            old = before[y] if y < len(before) else ()
            new = rows[y] if y < len(rows) else ()
            if old != new:
                start, end = changed_cells(old, new)
                self.refresh(Region(start, y, min(end, width) - start, 1))
                count += 1
        return count

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.sync()

    def notify_style_update(self) -> None:
        """Take the colours of the new theme."""
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen."""
        base = self.rich_style
        spans = self._rows[y] if y < len(self._rows) else ()
        segments = [
            Segment(span.text, self.style_at(y, span.variable, bold=span.bold)) for span in spans
        ]
        return Strip(segments).adjust_cell_length(self.size.width, base).simplify()

    def style_at(self, y: int, variable: str, *, bold: bool) -> Style:  # noqa: ARG002
        """Return the style of a span in row `y` of the screen."""
        return self.style_of(variable, bold=bold)

    def cursor_style(self) -> Style:
        """Return the style of the row under the cursor, whatever its own colours are."""
        host = cast("HostApp", self.app)
        ground = host.style_of("block-cursor-background").color
        ink = host.style_of("block-cursor-foreground").color
        return Style(color=ink, bgcolor=ground, bold=True)

    def refresh_row(self, y: int) -> None:
        """Repaint one row of the screen."""
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def style_of(self, variable: str, *, bold: bool = False) -> Style:
        """Return the widget's own style with the colour of a theme variable."""
        key = (variable, bold)
        if key not in self._styles:
            host = cast("HostApp", self.app)
            own = host.style_of(variable, bold=bold) if variable else Style(bold=bold or None)
            self._styles[key] = self.rich_style + own
        return self._styles[key]


def changed_cells(old: Spans, new: Spans) -> tuple[int, int]:
    """Return the first cell that differs, and the one after the last that does."""
    start = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        start += cell_len(one.text)
    old_width = sum(cell_len(span.text) for span in old)
    new_width = sum(cell_len(span.text) for span in new)
    end = max(old_width, new_width)
    if old_width != new_width:
        return start, end
    for one, other in zip(reversed(old), reversed(new), strict=False):
        if one != other:
            break
        end -= cell_len(one.text)
    return min(start, end), end
