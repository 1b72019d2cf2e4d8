"""The main screen: status line, panes, operations, filter and footer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from tpudash.store.changes import NOTHING, ChangeSet
from tpudash.tui.arrangement import arrange
from tpudash.tui.pane import Pane, PaneId
from tpudash.tui.widgets.alarm_strip import AlarmStrip
from tpudash.tui.widgets.footer import KeyFooter
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.nodes_pane import NodesPane
from tpudash.tui.widgets.operations_strip import OperationsStrip
from tpudash.tui.widgets.status_line import StatusLine
from tpudash.tui.widgets.trouble_line import TroubleLine
from tpudash.tui.widgets.wall_header import WallHeader
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from tpudash.tui.pane import HostApp, Subject

NODES_LEAST_ROWS = 7
SHORT_NAME = 5
TITLE_FRAME = 4
NODES_MOST_SHARE = 0.45


class FilterInput(Input):
    """The line in which a filter is typed; escape empties and closes it."""

    BINDINGS = [Binding("escape", "screen.end_filter(False)", show=False)]


@dataclass(slots=True)
class _View:
    """What the user chose to look at."""

    focused: PaneId = PaneId.NODES
    lower: PaneId = PaneId.UTILIZATION
    is_zoomed: bool = False


class MainScreen(Screen[None]):
    """All panes. It knows which are visible, and owes the hidden ones what they missed."""

    BINDINGS = [
        Binding("tab", "next_pane(1)", show=False),
        Binding("shift+tab", "next_pane(-1)", show=False),
    ]
    AUTO_FOCUS = ""

    def __init__(
        self,
        host: HostApp,
        panes: Mapping[PaneId, Pane],
        keymap: Mapping[str, tuple[str, ...]],
        *,
        project: str = "",
    ) -> None:
        super().__init__()
        self._host = host
        self.panes = panes
        self.status = StatusLine(host, project=project)
        self.trouble = TroubleLine(host)
        self.wall = WallHeader(host) if host.context.options.is_watch else None
        self.alarms = None if host.context.options.is_watch else AlarmStrip(host)
        self.strip = OperationsStrip(host)
        self.footer = KeyFooter(host, keymap)
        first = next(iter(panes))
        below = [pane for pane in panes if pane is not PaneId.NODES]
        self._view = _View(first, below[0] if below else first)
        self._owed: dict[PaneId, ChangeSet] = dict.fromkeys(panes, NOTHING)
        self._filters: dict[PaneId, str] = {}
        self._titles: dict[PaneId, Content] = {}

    def compose(self) -> ComposeResult:
        """Lay everything out; which panes are visible is decided by the size."""
        yield self.status
        yield self.trouble
        if self.wall is not None:
            yield self.wall
        if self.alarms is not None:
            yield self.alarms
        with Vertical(id="body"):
            if PaneId.NODES in self.panes:
                yield self.panes[PaneId.NODES]
            with Horizontal(id="lower"):
                for pane_id in (PaneId.UTILIZATION, PaneId.LOGS):
                    if pane_id in self.panes:
                        yield self.panes[pane_id]
                with Vertical(id="side"):
                    for pane_id in (PaneId.COST, PaneId.CHECKLIST):
                        if pane_id in self.panes:
                            yield self.panes[pane_id]
        yield self.strip
        with Horizontal(id="filter-bar"):
            yield Line(id="filter-label")
            yield FilterInput(id="filter-input", compact=True)
        yield self.footer

    def on_mount(self) -> None:
        """Arrange the panes and focus the first one."""
        self.query_one("#filter-input", Input).cursor_blink = False
        self.query_one("#filter-bar").display = False
        self.trouble.tick(self._host.context.now())
        self._arrange()
        self.focus_pane(self._view.focused)

    def on_resize(self, _event: events.Resize) -> None:
        """Arrange the panes for another size."""
        self._arrange()

    @property
    def current(self) -> Pane:
        """The pane that has the focus, or had it last."""
        return self.panes[self._view.focused]

    @property
    def visible_panes(self) -> tuple[PaneId, ...]:
        """The panes that are on the screen, in their order."""
        return tuple(pane_id for pane_id, pane in self.panes.items() if pane.display)

    @property
    def is_zoomed(self) -> bool:
        """Whether one pane has the whole screen."""
        return self._view.is_zoomed

    def apply(self, changes: ChangeSet) -> None:
        """Pass changes on to what is visible, and keep them for what is not."""
        self.status.apply(changes)
        if changes.sources:
            self._tick_trouble(self._host.context.now())
        if self.wall is not None:
            self.wall.apply(changes)
        if changes.alarms:
            self._tick_alarms(self._host.context.now())
        for pane_id, pane in self.panes.items():
            if pane.display:
                pane.apply(changes)
            else:
                self._owed[pane_id] = self._owed[pane_id].merge(changes)
        if changes.operations:
            self.strip.tick(self._host.context.now())
        self.draw_titles()

    def tick(self, now: datetime) -> None:
        """Move ages and dollars on where they are visible."""
        self.tick_frame(now)
        for pane_id in self.visible_panes:
            if self.panes[pane_id].is_mounted:
                self.panes[pane_id].tick(now)

    def tick_frame(self, now: datetime) -> None:
        """Move on what goes on even while the display is paused."""
        self.status.tick(now)
        self._tick_trouble(now)
        self._tick_alarms(now)
        self.strip.tick(now)
        if self.wall is not None:
            self.wall.tick(now)

    def _tick_trouble(self, now: datetime) -> None:
        if self.trouble.tick(now):
            self._arrange()

    def _tick_alarms(self, now: datetime) -> None:
        if self.alarms is not None and self.alarms.tick(now):
            self._arrange()

    def select(self, subject: Subject | None) -> None:
        """Tell all panes that another thing was selected."""
        for pane in self.panes.values():
            pane.selection_changed(subject)
        self.draw_titles()

    def focus_pane(self, pane_id: PaneId) -> None:
        """Show a pane and give it the focus."""
        if pane_id not in self.panes:
            return
        self._view.focused = pane_id
        if pane_id is not PaneId.NODES:
            self._view.lower = pane_id
        self._arrange()
        target = _focus_target(self.panes[pane_id])
        if target is not None:
            self.set_focus(target)
        self._host.refresh_bindings()

    def toggle_zoom(self) -> None:
        """Give the focused pane the whole screen, or give it back."""
        self._view.is_zoomed = not self._view.is_zoomed
        self._arrange()

    def rotate(self) -> None:
        """Zoom the next pane, unless someone is looking at something else."""
        if self.is_current and not self._host.context.is_paused:
            self._view.is_zoomed = True
            self.action_next_pane(1)

    def action_next_pane(self, step: int) -> None:
        """Focus the next pane in the order of their numbers."""
        order = tuple(self.panes)
        at = order.index(self._view.focused)
        self.focus_pane(order[(at + step) % len(order)])

    def _arrange(self) -> None:
        size = self._host.size
        view = self._view
        rows = size.height - self.trouble.wanted_rows
        rows -= self.alarms.wanted_rows if self.alarms is not None else 0
        if self.wall is not None:
            self.wall.fit(size)
            self.status.shows_clock = not self.wall.is_large
            rows -= self.wall.wanted_rows
        visible = arrange(
            (size.width, rows),
            tuple(self.panes),
            focused=view.focused,
            lower=view.lower,
            is_zoomed=view.is_zoomed,
        ).visible
        for pane_id, pane in self.panes.items():
            pane.display = pane_id in visible
            if pane.display and self._owed[pane_id] and pane.is_mounted:
                changes, self._owed[pane_id] = self._owed[pane_id], NOTHING
                pane.apply(changes)
        below = [pane_id for pane_id in visible if pane_id is not PaneId.NODES]
        self.query_one("#lower").display = bool(below)
        self.query_one("#side").display = bool(
            {PaneId.COST, PaneId.CHECKLIST}.intersection(visible)
        )
        self._fit_nodes()
        self.draw_titles()

    def _fit_nodes(self) -> None:
        """Give the nodes pane the rows that it needs, up to a share of the screen."""
        nodes = self.panes.get(PaneId.NODES)
        if not isinstance(nodes, NodesPane) or not nodes.is_mounted:
            return
        if self.visible_panes == (PaneId.NODES,):
            nodes.styles.height = "1fr"
            return
        most = int(self._host.size.height * NODES_MOST_SHARE)
        nodes.styles.height = max(NODES_LEAST_ROWS, min(nodes.wanted_height, most))

    def draw_titles(self) -> None:
        """Write number, name and note on each visible pane, and which ones are hidden."""
        visible = self.visible_panes
        hidden = [pane_id for pane_id in self.panes if pane_id not in visible]
        for pane_id in visible:
            pane = self.panes[pane_id]
            is_host_of_hidden = bool(hidden) and pane_id is visible[-1]
            title = self._title(pane, hidden if is_host_of_hidden else [])
            if self._titles.get(pane_id) != title:
                self._titles[pane_id] = title
                pane.border_title = title
            pane.set_class(pane_id is self._view.focused, "-current")

    def _title(self, pane: Pane, hidden: list[PaneId]) -> Content:
        """Return a pane's title; names of hidden panes are cut short where there is little room."""
        title = self._title_with(pane, hidden, None)
        room = pane.size.width or self._host.size.width
        if title.cell_length <= room - TITLE_FRAME:
            return title
        return self._title_with(pane, hidden, SHORT_NAME)

    def _title_with(self, pane: Pane, hidden: list[PaneId], longest: int | None) -> Content:
        parts = [(f"{pane.pane_id.number} {pane.title}", "bold")]
        note = pane.title_note()
        if note:
            parts.append((f" {safe_text(note, 80)}", ""))
        filtered = self._filters.get(pane.pane_id, "")
        if filtered and filtered not in note:
            parts.append((f" /{safe_text(filtered, 30)}", ""))
        for pane_id in hidden:
            other = self.panes[pane_id]
            note = other.title_note() if pane_id is PaneId.CHECKLIST else ""
            note = f" {safe_text(note, 20)}" if note else ""
            parts.append((f"  {pane_id.number} {other.title[:longest]}{note}", "dim"))
        return Content.assemble(*parts)

    def begin_filter(self) -> None:
        """Open the filter line for the focused pane."""
        label = self.query_one("#filter-label", Line)
        label.show(Text(f" filter {self.current.title.lower()}: "))
        label.styles.width = len(label.text.plain)
        self.query_one("#filter-bar").display = True
        line = self.query_one("#filter-input", Input)
        with line.prevent(Input.Changed):
            line.value = self._filters.get(self._view.focused, "")
        self.set_focus(line)

    def action_end_filter(self, keep: bool) -> None:
        """Close the filter line, and keep the filter or empty it."""
        if not keep:
            self._set_filter("")
        self.query_one("#filter-bar").display = False
        self.focus_pane(self._view.focused)

    def _set_filter(self, text: str) -> None:
        self._filters[self._view.focused] = text.strip()
        self.current.filter(text)
        self.draw_titles()

    @on(Input.Changed, "#filter-input")
    def _filter_changed(self, event: Input.Changed) -> None:
        self._set_filter(event.value)

    @on(Input.Submitted, "#filter-input")
    def _filter_submitted(self) -> None:
        self.action_end_filter(keep=True)

    @on(NodesPane.RowsChanged)
    def _rows_changed(self, event: NodesPane.RowsChanged) -> None:
        event.stop()
        self._fit_nodes()
        self.draw_titles()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Notice that the mouse or a pane moved the focus to another pane."""
        for node in event.widget.ancestors_with_self:
            if isinstance(node, Pane):
                if node.pane_id is not self._view.focused:
                    self._view.focused = node.pane_id
                    if node.pane_id is not PaneId.NODES:
                        self._view.lower = node.pane_id
                    self.draw_titles()
                self._host.refresh_bindings()
                return


def _focus_target(pane: Pane) -> Widget | None:
    """Return what takes the focus for a pane: itself, or the first thing in it that can."""
    if pane.can_focus:
        return pane
    for node in pane.walk_children():
        widget = cast("Widget", node)
        if widget.can_focus and widget.display:
            return widget
    return None
