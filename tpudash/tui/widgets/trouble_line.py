"""Sources in trouble, below the status line: who, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from tpudash.store.snapshot import SourceState
from tpudash.tui.looks import REPAIRING, TERMINATED
from tpudash.tui.troubles import Trouble, troubles
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from rich.style import Style
    from textual import events
    from textual.app import RenderResult

    from tpudash.tui.pane import HostApp


class TroubleLine(Widget):
    """Takes no room while every source answers, and a second row for advice that is long.

    The advice may be a command, which is of no use unless the whole of it can be read.
    """

    DEFAULT_CSS = """
    TroubleLine {
        background: $surface;
        height: 0;
        display: none;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self, host: HostApp) -> None:
        super().__init__(id="trouble")
        self._host = host
        self._lines: list[Text] = []

    @property
    def wanted_rows(self) -> int:
        """Rows of the screen that it takes."""
        return len(self._lines)

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the words into the new width."""
        self.tick(self._host.context.now())

    def notify_style_update(self) -> None:
        """Take on another theme."""
        super().notify_style_update()
        if self.is_mounted:
            self.tick(self._host.context.now())

    def tick(self, now: datetime) -> bool:
        """Bring the lines up to date; returns whether it takes other rows than before."""
        found = troubles(self._host.context.store.snapshot, now)
        lines = self._words(found, now) if found else []
        before, self._lines = self._lines, lines
        if len(lines) != len(before):
            self.display = bool(lines)
            self.styles.height = len(lines)
            return True
        if [(one.plain, one.spans) for one in lines] != [(one.plain, one.spans) for one in before]:
            self.refresh()
        return False

    def render(self) -> RenderResult:
        """Return the lines."""
        return Text("\n").join(self._lines)

    def _words(self, found: list[Trouble], now: datetime) -> list[Text]:
        worst = found[0]
        look = TERMINATED if worst.word == SourceState.FAILING else REPAIRING
        style = self._host.style_of(look.variable, bold=True)
        muted = self._host.style_of("muted")
        title, hint = safe_text(worst.title.rstrip("."), 200), safe_text(worst.hint, 300)
        reason = _line(f" {self._host.mark_of(look)} {safe_text(worst.who, 60)} ", style)
        reason.append(worst.word.upper() + (f": {title}" if title else ""), style)
        advice = _line(hint)
        since = _line(f" ({worst.since(now)})", muted)
        more = _line(f"  +{len(found) - 1} more" if len(found) > 1 else "", muted)
        if not hint:
            return [_joined(reason, more, since)]
        width = self._host.size.width
        for age in (since, _line("")):
            whole = _joined(reason, _line("; "), advice, more, age)
            if whole.cell_len <= width:
                return [whole]
        return [_joined(reason, more, since), _joined(_line("   "), advice)]


def _line(words: str, style: Style | str = "") -> Text:
    return Text(words, style)


def _joined(*parts: Text) -> Text:
    line = _line("")
    for part in parts:
        line.append_text(part)
    return line
