"""A page over the panes that lists what costs money: a table, and words on its selected row."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.content import Content

from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.widgets.row_view import RowView
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, wrap_words
from tpudash.wording.format import dollars
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

MOST_WORDS = 600


class MoneyPage(Overlay[None]):
    """Lays out the table and the words; what stands in them is for those who inherit."""

    page_title: ClassVar[str]
    page_keys: ClassVar[str]

    def compose(self) -> ComposeResult:
        """Lay out the table and what is known of its selected row."""
        with Vertical(classes="dialog page") as box:
            box.border_title = Content(self.page_title)
            box.border_subtitle = Content(self.page_keys)
            self._view = RowView(self, plain=self.host.context.options.ascii)
            self._detail = SpanView(self._draw_detail, classes="money-detail")
            yield self._view
            yield self._detail

    def keys(self) -> Sequence[str]:
        """Return the keys of all rows."""
        raise NotImplementedError

    def head(self, width: int) -> list[Spans]:
        """Return what stands above the rows."""
        raise NotImplementedError

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        raise NotImplementedError

    def about_selected(self) -> str:
        """Return what is said below the table."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the table and the words anew."""
        self._view.sync()
        self._detail.sync()

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Tell about the row that the cursor is on now."""
        event.stop()
        self._detail.sync()

    def in_dollars(self, amount: float | None, *, at_least: bool = False) -> str:
        """Return an amount such as `≥$1.35`, as the terminal can show it."""
        text = dollars(amount, at_least=at_least and amount is not None)
        return text.replace("≥", ">=") if self.host.context.options.ascii else text

    def _draw_detail(self, width: int, height: int) -> list[Spans]:
        words = safe_text(self.about_selected(), MOST_WORDS)
        lines = wrap_words(words, max(1, width - 2))[:height] if words else []
        return [(Span(" "), Span(line, "muted")) for line in lines]
