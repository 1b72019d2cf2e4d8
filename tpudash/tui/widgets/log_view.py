"""A view of the log ring that stays calm: it paints the visible lines only, and never by itself.

Where it stands is the line at the top and how many of that line's wrapped parts are hidden above,
so nothing has to be measured but what is seen, however many lines there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tpudash.domain.log import Severity
from tpudash.tui.widgets.log_view_filter import LogFilter, parse_filter
from tpudash.tui.widgets.log_view_model import LogLines
from tpudash.tui.widgets.log_view_paint import TIME_WIDTH, LogFrame, LogPainter
from tpudash.tui.widgets.log_view_scroll import LogScroll
from tpudash.tui.widgets.log_view_text import MAX_LINES, RANKS, LogRow

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual import events
    from textual.timer import Timer

    from tpudash.store.log_ring import LogRing

SIDE_STEP: Final = 8
WHEEL_LINES: Final = 3
FOLLOW_INTERVAL_S: Final = 0.5
"""A page of lines that moves up is repainted as a whole, so it does that twice a second at most."""
SEARCH_PAUSE_S: Final = 0.01
LANDMARKS: Final = frozenset({"start", "restore", "checkpoint", "preempt", "finish", "error"})


class LogView(Widget, can_focus=True):
    """The newest lines of all nodes, followed or standing still.

    Attributes:
        lines: Which lines are shown.
        following: Whether the newest line is kept at the bottom. Scrolling up ends it, the end
            begins it again; while it is off, no visible line moves, whatever arrives or is
            forgotten.
        wrap: Whether long lines go on in the next row instead of beyond the edge.
        since: Whether times are shown as ages.
        empty_text: What is shown when there is no line.
    """

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"
    BINDINGS: ClassVar = [
        Binding("up", "scroll_lines(-1)", "Up", show=False),
        Binding("down", "scroll_lines(1)", "Down", show=False),
        Binding("pageup", "scroll_pages(-1)", "Page up", show=False),
        Binding("pagedown", "scroll_pages(1)", "Page down", show=False),
        Binding("home", "go_home", "First line", show=False),
        Binding("end", "go_end", "Newest line", show=False),
        Binding("left", "scroll_side(-1)", "Left", show=False),
        Binding("right", "scroll_side(1)", "Right", show=False),
    ]

    class Changed(Message):
        """The view moved, or its counts changed."""

    def __init__(
        self,
        ring: LogRing,
        now: Callable[[], datetime],
        *,
        plain: bool = False,
        follow_interval_s: float = FOLLOW_INTERVAL_S,
    ) -> None:
        super().__init__()
        self.lines = LogLines(ring)
        self.following = True
        self.wrap = False
        self.since = False
        self.empty_text = ""
        self._now = now
        self._follow_interval_s = follow_interval_s
        self._rest: Timer | None = None
        self._search: Timer | None = None
        self._is_behind = False
        self._painter = LogPainter(self, plain=plain)
        self._scroll = LogScroll(self.lines, self._height_of)
        self._side = 0
        self._is_one_run = False
        self._marked: LogRow | None = None
        self._last_visible = -1
        self._page: list[Strip] | None = None

    # What the pane asks for.

    @property
    def behind(self) -> int:
        """How many shown lines are below the last visible one, or were not even taken in."""
        if self.following:
            return 0
        self._strips()
        return max(0, len(self.lines.shown) - 1 - self._last_visible) + self.lines.unread

    @property
    def side(self) -> int:
        """How many cells of the text are hidden to the left."""
        return 0 if self.wrap else self._side

    def sync(self) -> None:
        """Take in what the ring got; a standing view repaints nothing but its scroll mark."""
        was_full = self._fills_page()
        if not self.lines.sync(standing=not self.following):
            return
        if self.following:
            self._follow()
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

    def show_matching(self, text: str) -> LogFilter:
        """Show only lines that pass a filter as it was typed."""
        found = parse_filter(text)
        self.lines.set_filter(found)
        self._show_chosen()
        return found

    def show_scope(
        self, scope: Callable[[LogRow], bool] | None, *, is_one_run: bool = False
    ) -> None:
        """Show only lines of something, before any filter.

        Args:
            scope: Which lines to show, or None for all.
            is_one_run: Whether these are lines of one run.
        """
        self._is_one_run = is_one_run
        self.lines.set_scope(scope)
        self._show_chosen()

    def _show_chosen(self) -> None:
        """Show what was found so far, and go on looking once pending keys were heard."""
        self._scroll.skip = 0
        self.repaint()
        if self.lines.is_searching and self._search is None:
            self._search = self.set_timer(SEARCH_PAUSE_S, self._search_on)

    def _search_on(self) -> None:
        self._search = None
        self.lines.search_on()
        self._show_chosen()

    def toggle_follow(self) -> None:
        """Stand still where it is, or go to the newest line and follow."""
        self.following = not self.following
        if self.following:
            self._marked = None
            self.lines.sync(standing=False)
        self.repaint()

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
        if self.since and self.lines.shown:
            self._page = None
            self.refresh(Region(1, 0, TIME_WIDTH, self.size.height))

    def jump_to_error(self, step: int) -> bool:
        """Go to the next line with an error, newer for 1 and older for -1."""
        return self._jump(lambda row: row.rank >= RANKS[Severity.ERROR], step)

    def jump_to_landmark(self, step: int) -> bool:
        """Go to the next start, restore, checkpoint, preemption, end or error of a run."""
        return self._jump(lambda row: row.entry.event in LANDMARKS, step)

    def jump_to_match(self, step: int) -> bool:
        """Go to the next line of those that pass the filter."""
        return self._jump(lambda _: True, step)

    def visible_rows(self) -> list[LogRow]:
        """Return the lines that are on the screen now."""
        self._strips()
        return self.lines.shown[self.lines.top : self._last_visible + 1]

    @property
    def marked(self) -> LogRow | None:
        """The line that was jumped to or clicked."""
        return self._marked

    # Moving.

    def action_scroll_lines(self, count: int) -> None:
        """Move by so many rows of the screen; negative is towards older lines."""
        self._settle()
        self._scroll.move(count)
        self._after_moving(down=count > 0)

    def action_scroll_pages(self, count: int) -> None:
        """Move by so many pages, one row less so that a line stays in sight."""
        self.action_scroll_lines(count * max(1, self.size.height - 1))

    def action_go_home(self) -> None:
        """Go to the oldest line, and stand there."""
        self.following = False
        self._scroll.go_to(0)
        self.repaint()

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

    def _jump(self, test: Callable[[LogRow], bool], step: int) -> bool:
        self._settle()
        start = self._start_of_jump(step)
        found = self.lines.find(test, start, step)
        if found is None:
            return False
        self._marked = self.lines.shown[found]
        self.following = False
        self._scroll.go_to(found)
        self._scroll.move(-(self.size.height // 3))
        self._scroll.clamp(self.size.height)
        self.repaint()
        return True

    def _start_of_jump(self, step: int) -> int:
        """Return where to look first: beside the marked line if it can be seen, else the edge."""
        top, last = self.lines.top, self._last_visible
        for at in range(top, min(last + 1, len(self.lines.shown))):
            if self.lines.shown[at] is self._marked:
                return at + step
        if step < 0 and self.following:
            return len(self.lines.shown) - 1
        return last if step < 0 else top

    def _settle(self) -> None:
        """Make `top` what is really at the top, which a following view finds out by painting."""
        self._strips()

    def _after_moving(self, *, down: bool) -> None:
        at_end = self._scroll.clamp(self.size.height)
        self.following = down and at_end
        if self.following:
            self._marked = None
        self.repaint()

    def _height_of(self, row: LogRow) -> int:
        if not self.wrap:
            return 1
        return len(row.lines(self._painter.text_width(self.size.width), MAX_LINES))

    def _fills_page(self) -> bool:
        return self._last_visible - self.lines.top + 1 >= self.size.height or (
            self._last_visible < len(self.lines.shown) - 1
        )

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
        shown = self.lines.shown
        width, height = self.size
        self._last_visible = -1
        if not shown or not height:
            return self._painter.paint_empty(self.empty_text, width)
        first = max(0, len(shown) - height) if self.following else self.lines.top
        visible = shown[first : first + height]
        self._painter.note_sources(visible, is_one_run=self._is_one_run)
        if self.following:
            self._scroll.go_to_end(height)
        frame = LogFrame(
            width=width,
            height=height,
            wrap=self.wrap,
            side=self._side,
            marked=self._marked,
            is_one_run=self._is_one_run,
            now=self._now() if self.since else None,
            filter=self.lines.filter,
        )
        strips, self._last_visible = self._painter.paint(
            shown, self.lines.top, self._scroll.skip, frame
        )
        return strips
