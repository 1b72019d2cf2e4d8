"""A list of rows with a cursor: only visible rows are drawn, only changed cells repainted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from textual.binding import Binding
from textual.message import Message

from tpudash.tui.widgets.scroll_marks import scroll_marks
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, cut_spans, fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual import events

WHEEL_ROWS = 3


class Column(NamedTuple):
    """One column.

    Attributes:
        width: Cells that it needs.
        right: Whether figures are lined up at the right.
        rank: Columns of a higher rank are left out first where there is no room; 0 never is.
        grow: Its share of what the columns leave.
    """

    title: str
    width: int
    right: bool = False
    rank: int = 0
    grow: int = 0


def columns_that_fit(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns for which there is room, widened to fill the row."""
    chosen = list(columns)
    while sum(column.width + 1 for column in chosen) > width + 1:
        least = max(reversed(chosen), key=lambda column: column.rank)
        if not least.rank:
            break
        chosen.remove(least)
    rest = width + 1 - sum(column.width + 1 for column in chosen)
    shares = sum(column.grow for column in chosen)
    for at, column in enumerate(chosen):
        if column.grow:
            extra = rest * column.grow // shares
            chosen[at] = column._replace(width=max(1, column.width + extra))
            rest, shares = rest - extra, shares - column.grow
    return chosen


def row_of(columns: Sequence[Column], cells: dict[str, Span]) -> Spans:
    """Return a row with the cells of these columns, by title, each in its width."""
    spans = []
    for at, column in enumerate(columns):
        cell = cells.get(column.title, Span(""))
        blank = "" if at == 0 else " "
        text = fit(cell.text, column.width, right=column.right)
        spans.append(Span(blank + text, cell.variable, cell.bold))
    return tuple(spans)


def header_of(columns: Sequence[Column]) -> Spans:
    """Return the row of titles."""
    return row_of(columns, {column.title: Span(column.title, "muted") for column in columns})


class RowSource(Protocol):
    """What a row view shows. Rows are asked for while they are visible only."""

    def keys(self) -> Sequence[str]:
        """Return the key of every row, in order; keys are unique."""
        ...

    def head(self, width: int) -> Sequence[Spans]:
        """Return the rows that stand above all others and do not move."""
        ...

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        ...


class RowView(SpanView, can_focus=True):
    """Rows with a cursor that stays on its row wherever that moves.

    Args:
        source: What is shown.
        plain: Draw with ASCII only.
    """

    DEFAULT_CSS = "RowView { height: 1fr; width: 1fr; }"
    BINDINGS: ClassVar = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move_pages(-1)", "Page up", show=False),
        Binding("pagedown", "move_pages(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000)", "First", show=False),
        Binding("end,G", "move(1000000)", "Last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row."""

    def __init__(self, source: RowSource, *, plain: bool = False) -> None:
        super().__init__(self._draw_rows)
        self._source = source
        self._plain = plain
        self._cursor = 0
        self._cursor_key = ""
        self._top = 0
        self._cursor_y = -1
        self._head = 0

    @property
    def selected(self) -> str:
        """The key of the row under the cursor, or "" where there is none."""
        return self._cursor_key

    def select(self, key: str) -> None:
        """Put the cursor on a row."""
        keys = self._source.keys()
        if key in keys:
            self._put_cursor(keys.index(key), keys)

    def action_move(self, count: int) -> None:
        """Move the cursor by so many rows."""
        keys = self._source.keys()
        if keys:
            self._put_cursor(min(len(keys) - 1, max(0, self._cursor + count)), keys)

    def action_move_pages(self, count: int) -> None:
        """Move the cursor by so many pages."""
        self.action_move(count * max(1, self.size.height - self._head - 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down."""
        event.stop()
        self.action_move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up."""
        event.stop()
        self.action_move(-WHEEL_ROWS)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the row that was clicked."""
        at = self._top + event.y - self._head
        keys = self._source.keys()
        if event.y >= self._head and at < len(keys):
            self._put_cursor(at, keys)

    def on_focus(self) -> None:
        """Show the cursor as the active one."""
        self.refresh()

    def on_blur(self) -> None:
        """Show the cursor as an inactive one."""
        self.refresh()

    def style_at(self, y: int, variable: str, *, bold: bool) -> Style:
        """Return the style of a span; the row of the cursor has its own."""
        if y == self._cursor_y and self.has_focus:
            return self.cursor_style()
        return self.style_of(variable, bold=bold)

    def _put_cursor(self, at: int, keys: Sequence[str]) -> None:
        was = self._cursor_key
        self._cursor, self._cursor_key = at, keys[at]
        before = self._cursor_y
        self.sync()
        if self._cursor_y != before:
            self.refresh_row(before)
            self.refresh_row(self._cursor_y)
        if was != self._cursor_key:
            self.post_message(self.Moved())

    def _draw_rows(self, width: int, height: int) -> list[Spans]:
        keys = self._source.keys()
        most = height - 1 if keys else height
        head = [cut_spans(spans, width) for spans in self._source.head(width - 2)][:most]
        self._head = len(head)
        room = max(1, height - self._head)
        was, was_y = self._cursor_key, self._cursor_y
        self._find_cursor(keys)
        self._top = max(0, min(self._top, self._cursor, len(keys) - room))
        self._top = max(self._top, self._cursor - room + 1)
        visible = keys[self._top : self._top + room]
        self._cursor_y = self._head + self._cursor - self._top if keys else -1
        marks = scroll_marks(
            room,
            total=len(keys),
            first=self._top,
            last=self._top + len(visible) - 1,
            plain=self._plain,
        )
        rows = [(Span(" "), *spans) for spans in head]
        for at, key in enumerate(visible):
            gutter = self._gutter() if key == self._cursor_key else " "
            spans = cut_spans(self._source.row(key, width - 2), width - 2)
            rows.append((Span(gutter, "primary"), *spans, Span(marks[at], "muted")))
        if was_y not in (-1, self._cursor_y):
            self.refresh_row(was_y)
            self.refresh_row(self._cursor_y)
        if was != self._cursor_key:
            self.post_message(self.Moved())
        return rows

    def _find_cursor(self, keys: Sequence[str]) -> None:
        """Keep the cursor on its row; where that is gone, on the row in its place."""
        if not keys:
            self._cursor, self._cursor_key = 0, ""
            return
        if self._cursor < len(keys) and keys[self._cursor] == self._cursor_key:
            return
        if self._cursor_key in keys:
            self._cursor = keys.index(self._cursor_key)
        else:
            self._cursor = min(self._cursor, len(keys) - 1)
            self._cursor_key = keys[self._cursor]

    def _gutter(self) -> str:
        return ">" if self._plain else "▌"
