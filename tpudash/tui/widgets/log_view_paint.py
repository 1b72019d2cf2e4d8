"""Painting of log lines: a column each for time, source and kind, and then the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tpudash.logtext.entries import UNKNOWN_TIME
from tpudash.tui.widgets.log_view_text import MARKS, MAX_LINES, LogRow, cut_cells, one_line
from tpudash.tui.widgets.scroll_marks import THUMB
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from textual.widget import Widget

    from tpudash.tui.pane import HostApp
    from tpudash.tui.widgets.log_view_filter import LogFilter

TIME_WIDTH: Final = 8
MAX_SOURCE_WIDTH: Final = 16
NARROW: Final = 60
NARROW_IN_ONE_RUN: Final = 44
"""Below this width the column that names the source is left out."""
MAX_WORKER_COLORS: Final = 32
BOOKMARK: Final = ("◆", "*")


@dataclass(frozen=True, slots=True)
class LogFrame:
    """How a page is to be painted.

    Attributes:
        side: Cells of the text that are hidden to the left; of no meaning with `wrap`.
        marked: Number of the line to point at, or None.
        is_one_run: Whether all lines are of one run, so that attempt and worker name the source.
        now: What ages are counted from, or None to show the times themselves (in UTC).
        filter: What is to be highlighted.
        search: What is to be highlighted besides.
        bookmarks: Numbers of the lines that the user marked.
        tags: Words to set before lines, by number.
    """

    width: int
    height: int
    wrap: bool
    side: int
    marked: int | None
    is_one_run: bool
    now: datetime | None
    filter: LogFilter
    search: LogFilter
    bookmarks: AbstractSet[int]
    tags: Mapping[int, str]


class LogPainter:
    """Paints pages of log lines in the colours of the present theme.

    Args:
        widget: Whose style and theme are used.
        plain: Whether to draw with ASCII only.
    """

    def __init__(self, widget: Widget, *, plain: bool) -> None:
        self._widget = widget
        self._plain = plain
        self._sources: dict[tuple[str, str], int] = {}
        self._source_width = 0
        self._is_one_run = False
        self._worker_colors = 0
        self._styles: dict[str, Style] = {}
        self.is_full = False
        """Whether the last page was filled with lines."""

    def forget_styles(self) -> None:
        """Take the colours anew, for the theme changed."""
        self._styles = {}

    def text_width(self, width: int) -> int:
        """Return the cells that are left for the text of a line in a view of this width."""
        return max(1, width - 1 - self._head_width(width))

    def paint(self, rows: list[LogRow], skip: int, frame: LogFrame) -> tuple[list[Strip], int]:
        """Return the page and how many of the lines are on it.

        Args:
            rows: The lines from the top of the page on, as many as there may be room for.
            skip: How many wrapped parts of the first line are hidden above.
            frame: How to paint.
        """
        bodies: list[Strip] = []
        count = 0
        for row in rows:
            if len(bodies) >= frame.height:
                break
            bodies += self._paint_row(row, frame)[skip:]
            count, skip = count + 1, 0
        self.is_full = len(bodies) >= frame.height
        blank = Strip.blank(frame.width, self.style(""))
        return [*bodies, *[blank] * frame.height][: frame.height], count

    def with_marks(self, strips: list[Strip], seen: tuple[float, float]) -> list[Strip]:
        """Return a page with a scroll bar, unless everything is in sight.

        Args:
            strips: The page.
            seen: Which part of the log is in sight, as shares of its length.
        """
        start, end = seen
        height = len(strips)
        if end - start >= 1.0 or not height:
            return strips
        length = max(1, round(height * (end - start)))
        first = min(height - length, round(height * start))
        if end >= 1.0:
            first = height - length
        mark = THUMB[self._plain]
        return [
            self._with_mark(strip, mark) if first <= at < first + length else strip
            for at, strip in enumerate(strips)
        ]

    def paint_empty(self, text: str, width: int) -> list[Strip]:
        """Return a text that stands where no line can be shown, wrapped at words."""
        style = self.style("muted")
        lines: list[str] = []
        for word in one_line(text).split():
            if lines and len(lines[-1]) + 1 + len(word) <= width - 2:
                lines[-1] += f" {word}"
            else:
                lines.append(cut_cells(word, width - 2))
        return [
            Strip([Segment(f" {line}", style)]).extend_cell_length(width, style) for line in lines
        ]

    def note_sources(self, rows: list[LogRow], *, is_one_run: bool) -> None:
        """Make the column of sources as wide as these lines need.

        It never gets narrower, unless the way in which sources are named is another one.
        """
        longest = max((len(_full_name(row, is_one_run=is_one_run)) for row in rows), default=0)
        before = self._source_width if self._is_one_run == is_one_run else 0
        self._source_width = min(MAX_SOURCE_WIDTH, max(longest, before))
        self._is_one_run = is_one_run

    def style(self, variable: str, *, bold: bool = False) -> Style:
        """Return the widget's own style with the colour of a theme variable."""
        key = f"{variable}!" if bold else variable
        if key not in self._styles:
            host = cast("HostApp", self._widget.app)
            own = host.style_of(variable, bold=bold) if variable else Style()
            self._styles[key] = self._widget.rich_style + own
            known = host.theme_variables
            self._worker_colors = sum(f"worker-{at}" in known for at in range(MAX_WORKER_COLORS))
        return self._styles[key]

    def _paint_row(self, row: LogRow, frame: LogFrame) -> list[Strip]:
        kind = row.kind
        style = self.style(f"log-{kind}", bold=kind in {"error", "critical"})
        if row.is_context:
            style = self.style("muted")
        width = self.text_width(frame.width)
        badge = self._badge(row, frame)
        if frame.wrap:
            texts = [
                Strip(self._paint_text(line, style, frame)) for line in row.lines(width, MAX_LINES)
            ]
            if badge:
                texts[0] = Strip.join((Strip(badge), texts[0]))
        else:
            body = Strip([*badge, *self._paint_text(row.text, style, frame)])
            texts = [self._crop(body, frame)]
        blank = Strip.blank(self._head_width(frame.width), self.style(""))
        heads = [self._paint_head(row, style, frame), *[blank] * (len(texts) - 1)]
        return [
            Strip.join(parts).adjust_cell_length(frame.width, style).simplify()
            for parts in zip(heads, texts, strict=True)
        ]

    def _badge(self, row: LogRow, frame: LogFrame) -> list[Segment]:
        """Return what is set before a text: how many workers said it, what it is the cause of."""
        parts = []
        if row.workers > 1:
            parts.append(Segment(f"x{row.workers} ", self.style("primary", bold=True)))
        tag = frame.tags.get(row.number)
        if tag:
            parts.append(Segment(f"[{safe_text(tag, 60)}] ", self.style("error", bold=True)))
        return parts

    def _with_mark(self, row: Strip, mark: str) -> Strip:
        """Return a row whose last cell is part of the scroll bar."""
        bar = Strip([Segment(mark, self.style("muted"))])
        return Strip.join((row.adjust_cell_length(row.cell_length - 1), bar))

    def _crop(self, text: Strip, frame: LogFrame) -> Strip:
        """Return the part of a line that is in sight, with a mark where it goes on."""
        width = self.text_width(frame.width)
        is_cut = text.cell_length > frame.side + width
        seen = text.crop(frame.side, frame.side + width - is_cut)
        more = Strip([Segment(">" if self._plain else "…", self.style("muted"))])
        return Strip.join((seen, more)) if is_cut else seen

    def _paint_text(self, text: str, style: Style, frame: LogFrame) -> list[Segment]:
        segments = []
        done = 0
        found = [(*span, 1) for span in frame.filter.matches_in(text)]
        found += [(start, end, 0) for start, end in frame.search.matches_in(text)]
        for start, end, is_filter in sorted(found, key=lambda span: (span[0], span[2])):
            if start >= done:
                mark = Style(reverse=True, bold=not is_filter, underline=not is_filter)
                segments.append(Segment(text[done:start], style))
                segments.append(Segment(text[start:end], style + mark))
                done = end
        segments.append(Segment(text[done:], style))
        return [segment for segment in segments if segment.text]

    def _paint_head(self, row: LogRow, style: Style, frame: LogFrame) -> Strip:
        is_marked = row.number == frame.marked
        gutter = (">" if self._plain else "▌") if is_marked else " "
        if row.number in frame.bookmarks:
            gutter = BOOKMARK[self._plain]
            is_marked = True
        segments = [
            Segment(gutter, self.style("primary" if is_marked else "log-time")),
            Segment(f"{_time_of(row, frame):>{TIME_WIDTH}} ", self.style("log-time")),
        ]
        if self._has_source(frame.width):
            name = _source_name(row, self._source_width, is_one_run=frame.is_one_run)
            segments.append(Segment(f"{name} ", self._worker_style(row)))
        segments.append(Segment(f"{MARKS[row.kind][self._plain]} ", style))
        return Strip(segments)

    def _head_width(self, width: int) -> int:
        return 1 + TIME_WIDTH + 1 + (self._source_width + 1) * self._has_source(width) + 2

    def _has_source(self, width: int) -> bool:
        least = NARROW_IN_ONE_RUN if self._is_one_run else NARROW
        return width >= least and self._source_width > 0

    def _worker_style(self, row: LogRow) -> Style:
        number = self._sources.setdefault(row.source, len(self._sources))
        if not self._worker_colors:
            return self.style("log-info")
        return self.style(f"worker-{number % self._worker_colors}")


def _time_of(row: LogRow, frame: LogFrame) -> str:
    moment = row.entry.timestamp
    if moment == UNKNOWN_TIME:
        return ""
    return f"{moment:%H:%M:%S}" if frame.now is None else age(moment, frame.now)


def _full_name(row: LogRow, *, is_one_run: bool) -> str:
    """Return node and worker, or attempt and worker where the run is known anyway."""
    node, worker = row.source
    if row.workers > 1:
        worker = "*"
    if is_one_run and row.entry.attempt is not None:
        node = str(row.entry.attempt)
    return safe_text(f"{node}:{worker}" if node and worker else node, 80)


def _source_name(row: LogRow, width: int, *, is_one_run: bool) -> str:
    """Return the source in exactly so many cells; its end says most, so the head is cut."""
    name = _full_name(row, is_one_run=is_one_run)
    if cell_len(name) > width:
        name = f"…{name[1 - width :]}" if name.isascii() else cut_cells(name, width)
    return name + " " * (width - cell_len(name))
