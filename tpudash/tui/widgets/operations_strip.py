"""Operations under way, one line each, below the panes; they live on when their dialog closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widget import Widget

from tpudash.domain.operation import OperationProgress, OperationState
from tpudash.tui.looks import look_of
from tpudash.wording import format as fmt
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import RenderResult

    from tpudash.tui.pane import HostApp, ViewContext

SHOWN_WHEN_DONE_S: Final = 20
MOST_LINES: Final = 2


class OperationsStrip(Widget):
    """Running operations, those that ended just now, and failures until they were looked at."""

    DEFAULT_CSS = """
    OperationsStrip {
        height: auto;
        max-height: 2;
        display: none;
        background: $surface;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self, host: HostApp) -> None:
        super().__init__(id="operations-strip")
        self._host = host
        self._acknowledged: set[str] = set()
        self._lines: list[Text] = []

    @property
    def context(self) -> ViewContext:
        """What may be read."""
        return self._host.context

    @property
    def lines(self) -> list[str]:
        """The text of the lines that are shown."""
        return [line.plain for line in self._lines]

    def acknowledge(self) -> None:
        """Leave out the failures that are known now: the user has seen them."""
        self._acknowledged |= {
            one.operation_id
            for one in self.context.snapshot.operations.values()
            if one.state is not OperationState.RUNNING
        }
        self.tick(self.context.now())

    def tick(self, now: datetime) -> None:
        """Bring the lines up to date."""
        shown = self._chosen(now)
        lines = [self._line(one, now) for one in shown[:MOST_LINES]]
        if len(shown) > MOST_LINES:
            key = self._host.hints.key("operations")
            more = f"  +{len(shown) - MOST_LINES} more: {key}"
            lines[-1].append(more, self._host.style_of("muted"))
        if [(line.plain, line.spans) for line in lines] == [
            (line.plain, line.spans) for line in self._lines
        ]:
            return
        has_other_height = len(lines) != len(self._lines)
        self._lines = lines
        if has_other_height:
            self.display = bool(lines)
        self.refresh(layout=has_other_height)

    def _chosen(self, now: datetime) -> list[OperationProgress]:
        found = []
        for one in self.context.snapshot.operations.values():
            is_new = (now - one.updated).total_seconds() < SHOWN_WHEN_DONE_S
            is_running = one.state is OperationState.RUNNING
            is_trouble = one.state not in {OperationState.RUNNING, OperationState.DONE}
            if is_running or (
                one.operation_id not in self._acknowledged and (is_new or is_trouble)
            ):
                found.append(one)
        return sorted(found, key=lambda one: one.updated, reverse=True)

    def _line(self, one: OperationProgress, now: datetime) -> Text:
        look = look_of(one.state)
        style = self._host.style_of(look.variable, bold=True)
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f" {self._host.mark_of(look)} {one.kind} ", style)
        text.append(f"{safe_text(one.run or ', '.join(one.nodes), 60)} ", "bold")
        if one.state is not OperationState.RUNNING:
            text.append(f"{one.state} ", style)
        elif one.steps_total:
            text.append(f"{one.steps_done}/{one.steps_total} ")
        text.append(safe_text(one.message, 400))
        if one.state is OperationState.RUNNING:
            text.append(f" {fmt.age(one.started, now)}", self._host.style_of("muted"))
        elif one.state is not OperationState.DONE:
            words = self._host.hints.fill("  {operations}: why, and what to do")
            text.append(words, self._host.style_of("muted"))
        return text

    def render(self) -> RenderResult:
        """Return the lines."""
        return Text("\n").join(self._lines)
