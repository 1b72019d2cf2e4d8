"""The status line: project, zones, account, mode, age of the data and dollars an hour, always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from tpudash.domain.finding import Verdict
from tpudash.store.snapshot import NODES, SourceState
from tpudash.tui.alarms import is_old
from tpudash.tui.looks import TERMINATED
from tpudash.tui.spending import Spending, spending
from tpudash.tui.widgets.line import Line
from tpudash.wording import format as fmt
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from textual import events
    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.store.snapshot import Snapshot
    from tpudash.tui.pane import HostApp, ViewContext

MOST_ZONES: Final = 2
RIGHT_LEAST: Final = 22
"""Cells of the right part, so that a longer age seldom moves anything."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the line; the higher the rank, the sooner it is left out."""

    text: str
    style: Style
    rank: int = 0


class StatusLine(Widget):
    """One line at the top that never scrolls away.

    What moves every second is a widget of its own at the right, since a change repaints all that
    stands to the left of it in the same widget.

    Args:
        project: Shown until the connection says what it is.
    """

    DEFAULT_CSS = """
    StatusLine { layout: horizontal; height: 1; width: 1fr; background: $panel; }
    """

    def __init__(self, host: HostApp, *, project: str = "") -> None:
        super().__init__(id="status")
        self._host = host
        self._project = project
        self._spending = Spending(0.0, 0, 0)
        self._held = 0
        self._trouble = ""
        self.shows_clock = False
        self.mode = ""
        self._right_width = 0
        self._left = Line(id="status-left")
        self._right = Line(id="status-right")

    def compose(self) -> ComposeResult:
        """Lay out both parts."""
        yield self._left
        yield self._right

    @property
    def context(self) -> ViewContext:
        """What may be read."""
        return self._host.context

    def on_mount(self) -> None:
        """Draw what is known already."""
        self._spending = spending(self.context.snapshot, self.context.prices)
        self.tick(self.context.now())

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the line into the new width."""
        self.tick(self.context.now())

    def apply(self, changes: ChangeSet) -> None:
        """Bring the line up to date."""
        if changes.nodes or changes.sources or changes.connection or changes.control:
            self._spending = spending(self.context.snapshot, self.context.prices)
        self.tick(self.context.now())

    def hold(self, updates: int) -> None:
        """Show how many updates a paused display holds back."""
        self._held = updates
        self.tick(self.context.now())

    def complain(self, text: str) -> None:
        """Show that the background ended and no data will come any more."""
        self._trouble = text
        self.tick(self.context.now())

    def tick(self, now: datetime) -> None:
        """Move the age of the data on."""
        clock = [_Part(f" {now:%H:%M:%S} UTC ", Style())] if self.shows_clock else []
        right = [*clock, self._age(now), self._rate()]
        left = [*self._badges(), *self._alarms(), *self._checks(), *self._places()]
        right_width = max(RIGHT_LEAST, _length(right))
        width = self.size.width - right_width
        while left and _length(left) > width and any(part.rank for part in left):
            left.remove(max(left, key=lambda part: part.rank))
        if right_width != self._right_width:
            self._right_width = right_width
            self._right.styles.width = right_width
        self._left.show(_joined(left))
        padding = _Part(" " * (right_width - _length(right)), Style())
        self._right.show(_joined([padding, *right]))

    def _badges(self) -> list[_Part]:
        connection = self.context.snapshot.connection
        is_emulator = connection is not None and connection.is_emulator
        control = self.context.store.snapshot.control
        parts = []
        if self.mode:
            parts.append(self._badge(self.mode, "mode-watch"))
        elif self.context.options.is_watch:
            parts.append(self._badge("WATCH", "mode-watch"))
        elif control is not None and not control.is_ours:
            parts.append(self._badge("VIEWING", "mode-watch"))
            owner = control.holder.owner if control.holder else "another console"
            words = f" {safe_text(owner, 30)} has control "
            parts.append(_Part(words, self._style("chart-warn"), 1))
        elif not is_emulator:
            parts.append(self._badge("OPERATOR", "mode-operator"))
        if is_emulator:
            parts.append(self._badge("EMULATOR", "mode-emulator"))
        if self.context.is_paused:
            held = f" +{self._held}" if self._held else ""
            parts.append(self._badge(f"PAUSED{held}", "chart-warn"))
        if self._trouble:
            parts.append(_Part(f" {self._trouble} ", self._style("chart-bad", bold=True)))
        return parts

    def _alarms(self) -> list[_Part]:
        """Return how many alarms about money are on; what they say stands below."""
        count = len(self.context.store.snapshot.alarms)
        if not count:
            return []
        words = f" {self._host.mark_of('ALARM')} {count} alarm{'s' * (count > 1)} "
        return [_Part(words, self._style("chart-warn", bold=True))]

    def _checks(self) -> list[_Part]:
        """Return how many checks fail; which ones stands in the checklist."""
        findings = self.context.snapshot.findings
        count = sum(1 for finding in findings if finding.verdict is Verdict.FAIL)
        if not count:
            return []
        words = f" {self._host.mark_of(TERMINATED)} {count} wrong "
        return [_Part(words, self._style("chart-bad", bold=True), 1)]

    def _badge(self, word: str, variable: str) -> _Part:
        return _Part(f" {word} ", self._style(variable, bold=True) + Style(reverse=True))

    def _places(self) -> list[_Part]:
        snapshot = self.context.snapshot
        connection = snapshot.connection
        project = connection.project if connection else self._project
        others = [one for one in connection.projects if one != project] if connection else []
        words = safe_text(project, 40) or "no project"
        parts = [_Part(f" {words}", Style(bold=True))]
        if others:
            one = f" +{safe_text(others[0], 30)}"
            more = one if len(others) == 1 else f" +{len(others)} projects"
            parts.append(_Part(more, Style(bold=True), 1))
        zones, has_silent = _zones(snapshot)
        if zones:
            style = self._style("chart-warn") if has_silent else self._style("muted")
            parts.append(_Part(f"  {zones}", style, 2))
        if connection is not None and connection.account:
            account = "***" if self.context.options.is_watch else connection.account
            parts.append(_Part(f"  {safe_text(account, 40)}", self._style("muted"), 3))
        return parts

    def _age(self, now: datetime) -> _Part:
        status = self.context.snapshot.sources[NODES]
        age = status.age(now)
        if age is None:
            is_failing = status.state is SourceState.FAILING
            word = "no data" if is_failing else "no data yet"
            return _Part(f" {word} ", self._style("chart-bad" if is_failing else "muted"))
        has_aged = is_old(self.context.store.snapshot, now)
        word = "OLD DATA" if has_aged else "data"
        style = self._style("chart-bad", bold=True) if has_aged else self._style("muted")
        return _Part(f" {word} {fmt.duration(age)} ", style)

    def _rate(self) -> _Part:
        text = self._spending.text(plain=self.context.options.ascii)
        return _Part(f" {text} ", Style(bold=True))

    def _style(self, variable: str, *, bold: bool = False) -> Style:
        return self._host.style_of(variable, bold=bold)


def _joined(parts: list[_Part]) -> Text:
    text = Text()
    for part in parts:
        text.append(part.text, part.style)
    return text


def _length(parts: list[_Part]) -> int:
    return sum(cell_len(part.text) for part in parts)


def _zones(snapshot: Snapshot) -> tuple[str, bool]:
    """Return the zones in words, and whether one of them does not answer."""
    zones = {node.zone for node in snapshot.nodes.values()}
    zones |= {request.zone for request in snapshot.requests.values()}
    # A whole project that does not answer stands there too, as projects/ID.
    zones |= {place for place in snapshot.unreachable if "/" not in place}
    silent = len(snapshot.unreachable)
    if len(zones) > MOST_ZONES:
        words = f"{len(zones)} zones"
    else:
        words = ", ".join(safe_text(zone, 30) for zone in sorted(zones))
    return (f"{words} ({silent} silent)" if silent else words), bool(silent)
