"""Alarms about money below the status line, for as long as they last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from tpudash.tui.alarms import Alarm, money_alarms
from tpudash.tui.looks import look_of
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, cut_spans
from tpudash.wording import format as fmt
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.tui.pane import HostApp

MOST_ROWS: Final = 2
LEAST_SCREEN: Final = 30
"""Lower screens have one row for alarms; how many there are stands in the status line."""


class AlarmStrip(SpanView):
    """Takes no room while there is no alarm. Watch mode has them in its header instead."""

    DEFAULT_CSS = "AlarmStrip { height: 0; display: none; background: $surface; }"

    def __init__(self, host: HostApp) -> None:
        super().__init__(self._draw_rows)
        self.id = "alarm-strip"
        self._host = host
        self._alarms: Sequence[Alarm] = ()
        self.wanted_rows = 0

    def tick(self, now: datetime) -> bool:  # noqa: ARG002 - rows draw the time themselves
        """Bring the rows up to date; returns whether it takes other rows than before."""
        self._alarms = money_alarms(self._host.context.store.snapshot)
        most = MOST_ROWS if self._host.size.height >= LEAST_SCREEN else 1
        rows = min(most, len(self._alarms))
        has_other_height = rows != self.wanted_rows
        if has_other_height:
            self.wanted_rows = rows
            self.styles.height = rows
            self.display = rows > 0
        self.sync()
        return has_other_height

    def _draw_rows(self, width: int, height: int) -> list[Spans]:
        return alarm_rows(self._host, self._alarms, width, height)


def alarm_rows(host: HostApp, alarms: Sequence[Alarm], width: int, most: int) -> list[Spans]:
    """Return a row for each alarm; the last row says how many more there are."""
    now = host.context.now()
    rows = []
    for at, alarm in enumerate(alarms[:most]):
        more = len(alarms) - most if at == most - 1 else 0
        rows.append(_alarm_row(host, alarm, now, width, more))
    return rows


def _alarm_row(host: HostApp, alarm: Alarm, now: datetime, width: int, more: int) -> Spans:
    look = look_of(alarm.state)
    tail = f"  +{more} more" if more > 0 else ""
    words = (
        Span(f" {host.mark_of(look)} {safe_text(alarm.state, 24)} ", look.variable, True),
        Span(f"{fmt.age(alarm.since, now, step=5)}  ", "muted"),
        Span(safe_text(alarm.text, 400), "", True),
    )
    return (*cut_spans(words, width - cell_len(tail)), Span(tail, "muted"))
