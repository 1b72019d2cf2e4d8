"""A view of a log that stays calm: it paints the visible lines only, and never by itself.

Where it stands is the line at the top and how many of that line's wrapped parts are hidden above,
so nothing has to be measured but what is seen, however many lines there are.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tpudash.tui.widgets.log_view_choose import LogChoices
from tpudash.tui.widgets.log_view_filter import LogFilter
from tpudash.tui.widgets.log_view_jumps import LogJumps
from tpudash.tui.widgets.log_view_model import LogLines, Spot
from tpudash.tui.widgets.log_view_paint import TIME_WIDTH, LogFrame, LogPainter
from tpudash.tui.widgets.log_view_scroll import LogScroll
from tpudash.tui.widgets.log_view_seek import LogSeeker
from tpudash.tui.widgets.log_view_text import MAX_LINES, LogRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from textual import events
    from textual.timer import Timer

    from tpudash.store.log_lines import LogLinesSource

SIDE_STEP: Final = 8
WHEEL_LINES: Final = 3
FOLLOW_INTERVAL_S: Final = 0.5
"""A page of lines that moves up is repainted as a whole, so it does that twice a second at most."""


class LogView(Widget, can_focus=True):
    """The newest lines of a log, followed or standing still.

    Attributes:
        lines: Which lines are shown.
        following: Whether the newest line is kept at the bottom. Scrolling up ends it, the end
            begins it again; while it is off, no visible line moves, whatever arrives or is
            forgotten.
        wrap: Whether long lines go on in the next row instead of beyond the edge.
        since: Whether times are shown as ages.
        search: What is searched and highlighted beside the filter.
        bookmarks: Marked lines by number, with their times in microseconds.
        tags: Words that are set before a line, by its number.
        choices: Chooses which lines are shown.
        is_one_run: Whether all lines are of one run, so that attempt and worker name them.
        jumps: Goes to lines of some kind.
        seeker: Runs the searches of jumps.
        empty_text: What is shown when there is no line.
    """

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"
    BINDINGS: ClassVar = [
        Binding("up,k", "scroll_lines(-1)", "Up", show=False),
        Binding("down,j", "scroll_lines(1)", "Down", show=False),
        Binding("pageup", "scroll_pages(-1)", "Page up", show=False),
        Binding("pagedown", "scroll_pages(1)", "Page down", show=False),
        Binding("home,g", "go_home", "First line", show=False),
        Binding("end,G", "go_end", "Newest line", show=False),
        Binding("left", "scroll_side(-1)", "Left", show=False),
        Binding("right", "scroll_side(1)", "Right", show=False),
    ]

    class Changed(Message):
        """The view moved, or its counts changed."""

    def __init__(
        self,
        source: LogLinesSource,
        now: Callable[[], datetime],
        *,
        plain: bool = False,
        follow_interval_s: float = FOLLOW_INTERVAL_S,
    ) -> None:
        super().__init__()
        self.lines = LogLines(source)
        self.following = True
        self.wrap = False
        self.since = False
        self.search = LogFilter()
        self.bookmarks: dict[int, int] = {}
        self.tags: Mapping[int, str] = {}
        self.empty_text = ""
        self.seeker = LogSeeker(self)
        self.jumps = LogJumps(self)
        self.choices = LogChoices(self)
        self._now = now
        self._follow_interval_s = follow_interval_s
        self._rest: Timer | None = None
        self._is_behind = False
        self._painter = LogPainter(self, plain=plain)
        self._scroll = LogScroll(self.lines, self._height_of)
        self._side = 0
        self.is_one_run = False
        self._marked: LogRow | None = None
        self._last_visible: Spot | None = None
        self._page: list[Strip] | None = None

    # What the pane asks for.

    @property
    def behind(self) -> int:
        """How many shown lines are below the last visible one."""
        if self.following:
            return 0
        self._strips()
        return 0 if self._last_visible is None else self.lines.count_after(self._last_visible)

    @property
    def side(self) -> int:
        """How many cells of the text are hidden to the left."""
        return 0 if self.wrap else self._side

    def sync(self) -> None:
        """Take in what the log got; a standing view repaints nothing but its scroll mark."""
        was_full = self._fills_page()
        if not self.lines.sync(standing=not self.following):
            return
        self.choices.keep_looking()
        if self.following:
            self._follow()
        elif self.lines.is_lost:
            # What is painted is no longer held; it stays to be read until the user moves.
            self.post_message(self.Changed())
        elif not was_full:
            self.repaint()
        else:
            self._page = None
            self.refresh(Region(self.size.width - 1, 0, 1, self.size.height))
            self.post_message(self.Changed())

    def _follow(self) -> None:
        """Show the newest lines now, or when it is time again."""
        self._is_behind = True
        if self._rest is None:
            self._catch_up()

    def _catch_up(self) -> None:
        self._rest = None
        if self._is_behind and self.following:
            self.repaint()
            if self._follow_interval_s:
                self._rest = self.set_timer(self._follow_interval_s, self._catch_up)
        self._is_behind = False

    def show_chosen(self) -> None:
        """Paint what is shown now, after another choice of lines."""
        self._scroll.skip = 0
        self.repaint()

    def toggle_follow(self) -> None:
        """Stand still where it is, or go to the newest line and follow."""
        self.settle()
        self.following = not self.following
        if self.following:
            self._marked = None
            self.lines.sync(standing=False)
        self._moved()

    def toggle_wrap(self) -> None:
        """Wrap long lines, or let them go beyond the edge."""
        self.wrap = not self.wrap
        self._scroll.skip = 0
        self.repaint()

    def toggle_since(self) -> None:
        """Show times as ages, or as they are."""
        self.since = not self.since
        self.repaint()

    def tick(self) -> None:
        """Bring ages up to date, where they are shown."""
        if self.since and self.lines.top is not None and not self.lines.is_lost:
            self._page = None
            self.refresh(Region(1, 0, TIME_WIDTH, self.size.height))

    def visible_rows(self) -> list[LogRow]:
        """Return the lines that are on the screen now."""
        self._strips()
        rows = []
        for spot, row in self.lines.rows_from(self.lines.top):
            if self._last_visible is None or spot > self._last_visible:
                break
            rows.append(row)
        return rows

    @property
    def last_visible(self) -> Spot | None:
        """The newest line on the screen."""
        return self._last_visible

    @property
    def marked(self) -> LogRow | None:
        """The line that was jumped to."""
        return self._marked

    @property
    def current(self) -> LogRow | None:
        """The line that is meant: the marked one if it is in sight, else the last visible one."""
        rows = self.visible_rows()
        mark = self._marked
        if mark is not None and any(row.number == mark.number for row in rows):
            return mark
        return rows[-1] if rows else None

    # Moving.

    def action_scroll_lines(self, count: int) -> None:
        """Move by so many rows of the screen; negative is towards older lines."""
        self.settle()
        self._scroll.move(count)
        at_end = self._scroll.clamp(self.size.height)
        self.following = count > 0 and at_end
        if self.following:
            self._marked = None
        self._moved()

    def action_scroll_pages(self, count: int) -> None:
        """Move by so many pages, one row less so that a line stays in sight."""
        self.action_scroll_lines(count * max(1, self.size.height - 1))

    def action_go_home(self) -> None:
        """Go to the oldest line, and stand there."""
        self.following = False
        self._scroll.go_to(self.lines.first())
        self._moved()

    def action_go_end(self) -> None:
        """Go to the newest line, and follow."""
        if not self.following:
            self.toggle_follow()

    def action_scroll_side(self, count: int) -> None:
        """Move sideways; following never changes it."""
        longest = max((cell_len(row.text) for row in self.visible_rows()), default=0)
        most = max(0, longest - SIDE_STEP)
        self._side = min(max(0, self._side + count * SIDE_STEP), max(most, self._side))
        self.repaint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move towards newer lines."""
        event.stop()
        self.action_scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move towards older lines."""
        event.stop()
        self.action_scroll_lines(-WHEEL_LINES)

    def on_resize(self) -> None:
        """Fit the lines to the new size."""
        self._scroll.skip = 0
        self.repaint()

    def notify_style_update(self) -> None:
        """Take the colours of the new theme."""
        super().notify_style_update()
        self._painter.forget_styles()
        self._page = None

    def show_spot(self, spot: Spot) -> None:
        """Mark a line and stand so that it is in sight, with a third of the page above it."""
        self._marked = self.lines.row(spot)
        self.following = False
        self._scroll.go_to(spot)
        self._scroll.move(-(self.size.height // 3))
        self._scroll.clamp(self.size.height)
        self._moved()

    def _moved(self) -> None:
        self.lines.is_lost = False
        self.lines.hold(standing=not self.following)
        self.repaint()

    def settle(self) -> None:
        """Make `top` what is really at the top, which a following view finds out by painting."""
        if self.lines.sync(standing=not self.following) and not self.lines.is_lost:
            self._page = None
        self._strips()

    def _height_of(self, row: LogRow) -> int:
        if not self.wrap:
            return 1
        return len(row.lines(self._painter.text_width(self.size.width), MAX_LINES))

    def _fills_page(self) -> bool:
        last = self._last_visible
        return self._page is not None and last is not None and self._painter.is_full

    def repaint(self) -> None:
        """Paint the whole view again."""
        self._page = None
        self.refresh()
        self.post_message(self.Changed())

    # Painting.

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen."""
        strips = self._strips()
        return strips[y] if y < len(strips) else Strip.blank(self.size.width, self.rich_style)

    def _strips(self) -> list[Strip]:
        if self._page is None:
            self._page = self._paint_page()
        return self._page

    def _paint_page(self) -> list[Strip]:
        width, height = self.size
        self._last_visible = None
        self.lines.sync(standing=not self.following)
        if self.following and height:
            self._scroll.go_to_end(height)
        top = self.lines.top
        if top is None or not height:
            return self._painter.paint_empty(self.empty_text, width)
        rows = list(islice(self.lines.rows_from(top), height))
        self._painter.note_sources([row for _, row in rows], is_one_run=self.is_one_run)
        if self.following:
            self._scroll.go_to_end(height)
            top = self.lines.top or top
            rows = list(islice(self.lines.rows_from(top), height))
        frame = LogFrame(
            width=width,
            height=height,
            wrap=self.wrap,
            side=self._side,
            marked=self._marked.number if self._marked else None,
            is_one_run=self.is_one_run,
            now=self._now() if self.since else None,
            filter=self.lines.filter,
            search=self.search,
            bookmarks=self.bookmarks.keys(),
            tags=self.tags,
        )
        strips, count = self._painter.paint([row for _, row in rows], self._scroll.skip, frame)
        self._last_visible = rows[count - 1][0]
        return self._painter.with_marks(strips, self._bar(top, self._last_visible))

    def _bar(self, top: Spot, last: Spot) -> tuple[float, float]:
        """Return which part of the log is in sight, as shares of its length."""
        if self.lines.before(top) is None and self.lines.after(last) is None:
            return (0.0, 1.0)
        end = Spot(last.part, last.at + 1)
        return (self.lines.fraction_before(top), self.lines.fraction_before(end))
