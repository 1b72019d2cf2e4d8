"""The page of what happened in the project, before this console was opened and since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content

from tpudash.store.past import GONE, Past
from tpudash.store.snapshot import NODES
from tpudash.tui.looks import look_of
from tpudash.tui.screens.overlay import Page, Paragraphs
from tpudash.tui.widgets.spark import sorted_into_cells, spark_row
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.text import Text
    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.store.past import CostSeen
    from tpudash.store.snapshot import Snapshot
    from tpudash.tui.pane import HostApp

MOST_ROWS: Final = 500
COST_SPAN: Final = timedelta(hours=24)
COST_CELLS: Final = 48
LONGEST_GAP: Final = timedelta(minutes=15)
"""Between costs further apart than this nobody was watching; that time is not counted."""
REDRAW_EVERY_S: Final = 5


@dataclass(frozen=True, slots=True)
class Happening:
    """One row: when, what it happened to, and what; `look` is the word that colours it."""

    time: datetime
    subject: str
    words: str
    look: str = ""


class PastScreen(Page):
    """Newest first; live."""

    def __init__(self, host: HostApp) -> None:
        super().__init__(host, id="past-screen")
        self._drawn: tuple[int, datetime] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with Vertical(classes="dialog page") as box:
            box.border_title = Content(self.host.hints.fill("History (esc closes, {copy} copies)"))
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        self.tick(self.host.context.now())
        self.query_one("#page-body").focus()

    def apply(self, changes: ChangeSet) -> None:
        """Bring the page up to date."""
        if changes.past or changes.nodes or changes.logs:
            self.tick(self.host.context.now())

    def tick(self, now: datetime) -> None:
        """Write the page anew where something was added, and now and then."""
        revision = self.host.context.store.past.revision
        if self._drawn is not None:
            known, at = self._drawn
            if known == revision and (now - at).total_seconds() < REDRAW_EVERY_S:
                return
        self._drawn = (revision, now)
        self.show(past_text(self.host))


def past_text(host: HostApp) -> Text:
    """Return the page."""
    context = host.context
    past, now = context.store.past, context.now()
    page = Paragraphs(host)
    _costs(page, past.costs, host)
    rows = sorted(happenings(past, context.snapshot), key=lambda row: row.time, reverse=True)
    page.heading("What happened (UTC, newest first)")
    if not rows:
        page.styled("Nothing was seen yet, neither now nor by an earlier console.", "muted")
    day = now.date()
    for row in rows[:MOST_ROWS]:
        if row.time.date() != day:
            day = row.time.date()
            page.styled(f"{day:%A %Y-%m-%d}", "muted", bold=True)
        look = look_of(row.look) if row.look else None
        mark = f"{host.mark_of(look)} " if look else "  "
        words = f"{row.time:%H:%M:%S}  {mark}{row.subject:<18}  {row.words}"
        page.line(words, host.style_of(look.variable) if look else "")
    if len(rows) > MOST_ROWS:
        page.styled(f"and {len(rows) - MOST_ROWS:,} more before that", "muted")
    return page.text


def happenings(past: Past, snapshot: Snapshot) -> Iterator[Happening]:
    """Yield states of nodes and turning points of runs, in no order."""
    for name in past.nodes:
        node_id = name.rsplit("/", 1)[-1]
        states = past.states_of(name)
        for one in states:
            words = "no longer listed" if one.state == GONE else one.state
            yield Happening(one.time, node_id, words, one.state)
        if states[-1].state != GONE and _is_lost(name, snapshot):
            words = f"was still {states[-1].state} when last seen; it went while nobody watched"
            yield Happening(states[-1].time, node_id, words, GONE)
    for event in past.events:
        attempt = f"attempt {event.attempt}: " if event.attempt else ""
        yield Happening(event.time, event.run or event.node_id, f"{attempt}{event.text}")


def _is_lost(name: str, snapshot: Snapshot) -> bool:
    """Whether a node that was known is not there although its zone has answered."""
    zone = name.split("/")[3] if name.count("/") >= 5 else ""
    has_answered = snapshot.sources[NODES].last_success is not None
    is_listed = name in snapshot.nodes or name in snapshot.tombstones
    return has_answered and not is_listed and zone not in snapshot.unreachable


def _costs(page: Paragraphs, costs: tuple[CostSeen, ...], host: HostApp) -> None:
    """Add what the project cost an hour over the last day, as far as somebody watched."""
    now = host.context.now()
    known = [one for one in costs if one.time >= now - COST_SPAN and one.per_hour_usd is not None]
    if not known:
        return
    page.heading("Cost an hour over the last 24 h (estimate)")
    samples = [(one.time.timestamp(), one.per_hour_usd or 0.0) for one in known]
    start = (now - COST_SPAN).timestamp()
    cells = sorted_into_cells(samples, start, now.timestamp(), COST_CELLS)
    row = spark_row(cells, COST_CELLS, low=0.0, plain=host.context.options.ascii)
    top = max(value for _, value in samples)
    page.line(f"-24h {row} now", host.style_of("chart-line"))
    words = f"now {fmt.dollars(samples[-1][1])}/h, at most {fmt.dollars(top)}/h"
    page.line(f"{words}; {fmt.dollars(_spent(known))} while somebody watched")


def _spent(costs: list[CostSeen]) -> float:
    """Return what was spent between neighbouring costs, gaps left out."""
    total = 0.0
    for sooner, later in pairwise(costs):
        between = later.time - sooner.time
        if between <= LONGEST_GAP:
            total += (sooner.per_hour_usd or 0.0) * between.total_seconds() / 3600
    return total
