"""A table that repaints the cells that changed and nothing else, however many rows it has.

Rows are drawn on demand from a function that returns cells, so that 5,000 rows cost as much as
the visible ones. `apply` is the only way in which drawn cells change: compare, set, and repaint
that one coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tpudash.wording.text import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.style import Style
    from textual import events
    from textual.binding import BindingType

HEADER_ROWS: Final = 1
GAP: Final = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one cell: harmless text, and the theme variable of its colour."""

    text: str = ""
    variable: str = ""
    bold: bool = False
    dim: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of fixed width."""

    key: str
    label: str
    width: int
    right: bool = False


class NodeTable(ScrollView, can_focus=True):
    """Rows with a cursor, columns of fixed width.

    Args:
        cell_of: Returns the cell of a row key and a column key.
        style_of: Returns the style of a theme variable.
        plain: Draw with ASCII characters only.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--header",
        "table--cursor",
        "table--cursor-blurred",
    }
    DEFAULT_CSS = """
    NodeTable {
        height: 1fr;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
        overflow-x: hidden;
        & > .table--header { color: $foreground 70%; text-style: bold; }
        & > .table--cursor {
            color: $block-cursor-foreground;
            background: $block-cursor-background;
            text-style: bold;
        }
        & > .table--cursor-blurred { background: $surface-lighten-2; }
        &:ansi > .table--cursor { text-style: reverse; }
        &:ansi > .table--cursor-blurred { text-style: underline; }
        &:nocolor > .table--cursor { text-style: reverse; }
        &:nocolor > .table--cursor-blurred { text-style: underline; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f", "page(1)", show=False),
        Binding("home,g", "edge(0)", show=False),
        Binding("end,G", "edge(1)", show=False),
    ]

    @dataclass
    class RowHighlighted(Message):
        """The cursor stands on another row."""

        row_key: str | None

    @dataclass
    class RowChosen(Message):
        """A row was clicked twice."""

        row_key: str

    @dataclass
    class HeaderClicked(Message):
        """The heading of a column was clicked."""

        column_key: str

    def __init__(
        self,
        cell_of: Callable[[str, str], Cell],
        style_of: Callable[[Cell], Style],
        *,
        plain: bool = False,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._cell_of = cell_of
        self._style_of = style_of
        self._ellipsis = "~" if plain else ELLIPSIS
        self._columns: tuple[Column, ...] = ()
        self._offsets: tuple[int, ...] = ()
        self._keys: tuple[str, ...] = ()
        self._index: dict[str, int] = {}
        self._drawn: dict[tuple[str, str], Cell] = {}
        self._cursor = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are shown."""
        return self._columns

    @property
    def row_keys(self) -> tuple[str, ...]:
        """The keys of all rows, in their order."""
        return self._keys

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor, or None if there is no row."""
        return self._keys[self._cursor] if self._keys else None

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Show these columns; repaints everything if they differ from the present ones."""
        if tuple(columns) == self._columns:
            return
        self._columns = tuple(columns)
        offsets, x = [], GAP
        for column in self._columns:
            offsets.append(x)
            x += column.width + GAP
        self._offsets = tuple(offsets)
        self._drawn.clear()
        self.refresh()

    def set_rows(self, keys: Sequence[str]) -> None:
        """Show these rows in this order; the cursor stays on its row, or near where it was."""
        if tuple(keys) == self._keys:
            return
        before = self.cursor_key
        self._keys = tuple(keys)
        self._index = {key: at for at, key in enumerate(self._keys)}
        self._drawn = {at: cell for at, cell in self._drawn.items() if at[0] in self._index}
        last = max(0, len(self._keys) - 1)
        self._cursor = self._index.get(before or "", min(self._cursor, last))
        self.virtual_size = Size(self.size.width, len(self._keys) + HEADER_ROWS)
        self._keep_cursor_visible()
        self.refresh()
        if self.cursor_key != before:
            self.post_message(self.RowHighlighted(self.cursor_key))

    def move_to(self, key: str) -> bool:
        """Put the cursor on a row; returns whether there is such a row."""
        if key not in self._index:
            return False
        self._move(self._index[key])
        return True

    def apply(self, keys: Iterable[str], column_keys: Iterable[str] | None = None) -> int:
        """Repaint those cells of these rows that are no longer as drawn.

        Args:
            keys: Rows that may have changed; unknown ones are ignored.
            column_keys: Columns to look at, or None for all.

        Returns:
            How many cells were repainted.
        """
        wanted = None if column_keys is None else frozenset(column_keys)
        visible = self._visible_rows()
        repainted = 0
        for key in keys:
            row = self._index.get(key)
            if row is None:
                continue
            for at, column in enumerate(self._columns):
                place = (key, column.key)
                if (wanted is not None and column.key not in wanted) or place not in self._drawn:
                    continue
                if row not in visible:
                    del self._drawn[place]
                    continue
                cell = self._cell_of(key, column.key)
                if cell != self._drawn[place]:
                    self._drawn[place] = cell
                    self.refresh_coordinate(row, at)
                    repainted += 1
        return repainted

    def apply_visible(self, column_keys: Iterable[str]) -> int:
        """Repaint those cells of these columns, in the visible rows, that are not as drawn."""
        rows = self._visible_rows()
        return self.apply(self._keys[rows.start : rows.stop], column_keys)

    def refresh_coordinate(self, row: int, column: int) -> None:
        """Repaint one cell."""
        y = row - self.scroll_offset.y + HEADER_ROWS
        self.refresh(Region(self._offsets[column], y, self._columns[column].width, 1))

    def text_of(self, key: str) -> str:
        """Return a row's cells as tab-separated text."""
        return "\t".join(self._cell_of(key, column.key).text.strip() for column in self._columns)

    def redraw(self) -> None:
        """Forget what was drawn, and draw everything anew."""
        self._drawn.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Take on another theme."""
        super().notify_style_update()
        self.redraw()

    def _visible_rows(self) -> range:
        top = self.scroll_offset.y
        height = max(0, self.scrollable_content_region.height - HEADER_ROWS)
        return range(top, min(len(self._keys), top + height))

    def render_line(self, y: int) -> Strip:
        """Draw the header, a row, or nothing."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y < HEADER_ROWS:
            style = base + self.get_component_rich_style("table--header", partial=True)
            cells = [(Cell(column.label), column) for column in self._columns]
            return self._strip(cells, style, style, width)
        row = y - HEADER_ROWS + self.scroll_offset.y
        if row >= len(self._keys):
            return Strip.blank(width, base)
        key = self._keys[row]
        cells = [(self._cell(key, column.key), column) for column in self._columns]
        if row != self._cursor:
            return self._strip(cells, base, None, width)
        name = "table--cursor" if self.has_focus else "table--cursor-blurred"
        cursor = base + self.get_component_rich_style(name, partial=True)
        return self._strip(cells, cursor, cursor if self.has_focus else None, width)

    def _cell(self, key: str, column_key: str) -> Cell:
        place = (key, column_key)
        cell = self._drawn.get(place)
        if cell is None:
            cell = self._drawn[place] = self._cell_of(key, column_key)
        return cell

    def _strip(
        self, cells: list[tuple[Cell, Column]], base: Style, forced: Style | None, width: int
    ) -> Strip:
        """Join cells to a line; `forced` overrules the cells' own colours."""
        segments = [Segment(" " * GAP, base)]
        for cell, column in cells:
            style = forced or base + self._style_of(cell)
            segments.append(Segment(self._fit(cell.text, column), style))
            segments.append(Segment(" " * GAP, base))
        return Strip(segments).simplify().adjust_cell_length(width, base)

    def _fit(self, text: str, column: Column) -> str:
        length = cell_len(text)
        if length > column.width:
            return set_cell_size(text, column.width - 1) + self._ellipsis
        filling = " " * (column.width - length)
        return filling + text if column.right else text + filling

    def _move(self, row: int) -> None:
        row = max(0, min(row, len(self._keys) - 1))
        if not self._keys or row == self._cursor:
            return
        before, self._cursor = self._cursor, row
        self._repaint_row(before)
        self._keep_cursor_visible()
        self._repaint_row(row)
        self.post_message(self.RowHighlighted(self.cursor_key))

    def _repaint_row(self, row: int) -> None:
        if row in self._visible_rows():
            y = row - self.scroll_offset.y + HEADER_ROWS
            self.refresh(Region(0, y, self.size.width, 1))

    def _keep_cursor_visible(self) -> None:
        height = max(1, self.scrollable_content_region.height - HEADER_ROWS)
        top = self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, immediate=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, immediate=True)

    def on_resize(self, _event: events.Resize) -> None:
        """Keep the cursor in sight."""
        self.virtual_size = Size(self.size.width, len(self._keys) + HEADER_ROWS)
        self._keep_cursor_visible()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Draw the cursor as focused or not."""
        super().watch_has_focus(has_focus)
        self._repaint_row(self._cursor)

    def action_move(self, rows: int) -> None:
        """Move the cursor by so many rows."""
        self._move(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by so many screens."""
        self._move(self._cursor + pages * max(1, len(self._visible_rows())))

    def action_edge(self, end: int) -> None:
        """Move the cursor to the first or the last row."""
        self._move(end * (len(self._keys) - 1))

    def on_click(self, event: events.Click) -> None:
        """Select the row under the mouse; a second click chooses it."""
        if event.y < HEADER_ROWS:
            for column, x in zip(self._columns, self._offsets, strict=True):
                if x <= event.x < x + column.width:
                    self.post_message(self.HeaderClicked(column.key))
            return
        row = event.y - HEADER_ROWS + self.scroll_offset.y
        if row < len(self._keys):
            self._move(row)
            if event.chain == 2:
                self.post_message(self.RowChosen(self._keys[row]))
