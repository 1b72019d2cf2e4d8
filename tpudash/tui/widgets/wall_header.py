"""The head of a wall screen: a large clock, dollars, counts, and alarms for as long as they last.

The clock moves every second, so that a screen that stands still is seen to be dead.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from tpudash.store.snapshot import NODES
from tpudash.tui.alarms import Alarm, AlarmBook, is_old
from tpudash.tui.looks import look_of
from tpudash.tui.spending import Spending, spending
from tpudash.tui.widgets.alarm_strip import alarm_rows
from tpudash.tui.widgets.big_text import ROWS, big
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, cut_spans
from tpudash.wording import format as fmt
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.geometry import Size

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp, ViewContext

LEAST_ROWS: Final = 24
"""Lower screens have only the alarms; their status line shows the clock."""
MOST_ALARMS: Final = 4
MOST_STATES: Final = 4


class WallHeader(SpanView):
    """Only made in watch mode."""

    DEFAULT_CSS = "WallHeader { height: 0; background: $surface; }"

    def __init__(self, host: HostApp) -> None:
        super().__init__(self._draw_rows)
        self.id = "wall-header"
        self._host = host
        self._book = AlarmBook()
        self._alarms: list[Alarm] = []
        self._spending = Spending(0.0, 0, 0)
        self._is_large = False
        self.wanted_rows = 0

    @property
    def context(self) -> ViewContext:
        """What may be read."""
        return self._host.context

    @property
    def alarms(self) -> Sequence[Alarm]:
        """The alarms that are on, those to be shown first at the front."""
        return self._alarms

    @property
    def is_large(self) -> bool:
        """Whether the large clock is shown."""
        return self._is_large

    def fit(self, size: Size) -> None:
        """Take the rows that a screen of this size has for it."""
        self._is_large = size.height >= LEAST_ROWS
        self.apply(None)

    def apply(self, _changes: ChangeSet | None) -> None:
        """Bring everything up to date."""
        self._spending = spending(self.context.snapshot, self.context.prices)
        self.tick(self.context.now())

    def tick(self, now: datetime) -> None:
        """Move the clock on, and see which alarms are on."""
        self._alarms = self._book.look(self.context.store.snapshot, now)
        room = MOST_ALARMS if self._host.size.height >= 2 * LEAST_ROWS else 2
        rows = (ROWS if self._is_large else 0) + min(len(self._alarms), room)
        if rows != self.wanted_rows:
            self.wanted_rows = rows
            self.styles.height = rows
            self.display = rows > 0
        self.sync()

    def _draw_rows(self, width: int, height: int) -> list[Spans]:
        now = self.context.now()
        rows = self._large_rows(now, width) if self._is_large else []
        return [*rows, *alarm_rows(self._host, self._alarms, width, height - len(rows))]

    def _large_rows(self, now: datetime, width: int) -> list[Spans]:
        plain = self.context.options.ascii
        clock = big(f"{now:%H:%M:%S}", plain=plain)
        rate = self._spending
        dollars = (
            "" if rate.unpriced and rate.unpriced == rate.billed else f"{rate.per_hour_usd:.2f}"
        )
        money = big(f"${dollars}" if dollars else "$?", plain=plain)
        at_least = ">= " if plain else "≥ "
        notes = ("UTC", "", "")
        units = ("", at_least if rate.unpriced else "", " /h")
        rows = []
        for row, words in enumerate(self._words(now)):
            left = (Span(f" {clock[row]} ", "primary", True), Span(f"{notes[row]:<4} ", "muted"))
            right = (
                Span(units[row] if row < 2 else "", "muted"),
                Span(money[row], "", True),
                Span(units[row] if row == 2 else "   ", "muted"),
                Span(" "),
            )
            used = sum(cell_len(span.text) for span in (*left, *words, *right))
            middle = (*words, Span(" " * (width - used))) if used <= width else ()
            rows.append(cut_spans((*left, *middle, *right), width))
        return rows

    def _words(self, now: datetime) -> tuple[Spans, Spans, Spans]:
        """Return what stands between clock and dollars: place, states, age of the data."""
        snapshot = self.context.snapshot
        info = snapshot.connection
        project = Span(safe_text(info.project, 40) if info else "not connected yet", "", True)
        counts = Counter(str(run.state) for run in snapshot.runs.values())
        states: list[Span] = []
        for state, count in counts.most_common(MOST_STATES):
            look = look_of(state)
            mark = self._host.mark_of(look)
            states.append(Span(f"{mark} {count} {safe_text(state, 20)}  ", look.variable, True))
        age = snapshot.sources[NODES].age(now)
        if age is None:
            data = Span("no data yet", "muted")
        elif is_old(snapshot, now):
            data = Span(f"OLD DATA: {fmt.duration(age)}", "chart-bad", True)
        else:
            data = Span(f"data {fmt.duration(age)} old", "muted")
        return (project,), tuple(states) or (Span("no runs", "muted"),), (data,)
