"""The cost pane: dollars for each run and node, now and so far, with the source of each price."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from tpudash.cost.cap import NEARLY
from tpudash.store.snapshot import NODES, PRICES, SourceState
from tpudash.tui.looks import look_of
from tpudash.tui.pane import Pane, PaneId, Subject
from tpudash.tui.widgets.cost_pane_ledger import Ledger, LedgerLine
from tpudash.tui.widgets.cost_pane_words import MoneyWords
from tpudash.tui.widgets.empty_reason import nothing_runs, source_problem
from tpudash.tui.widgets.row_view import Column, RowView, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, fit, wrap_words
from tpudash.tui.widgets.word_filter import matches
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.domain.price import Price
    from tpudash.store.changes import ChangeSet

COLUMNS: Final = (
    Column("NAME", 14, grow=1),
    Column("STATE", 12, rank=3),
    Column("TYPE", 14, rank=4),
    Column("$/H", 9, right=True),
    Column("SO FAR", 9, right=True),
    Column("TODAY", 9, right=True, rank=6),
    Column("MONTH", 9, right=True, rank=5),
    Column("WASTED", 9, right=True, rank=2),
    Column("AT TARGET", 9, right=True, rank=7),
    Column("$/1K STEPS", 10, right=True, rank=8),
    Column("PER CHIP", 9, right=True, rank=9),
    Column("PRICE OF", 10, rank=10),
)
DETAIL_ROWS: Final = 3
MORE_ROWS: Final = 6
LEAST_ROWS_FOR_DETAIL: Final = 11
LEAST_ROWS_FOR_MORE: Final = 17
ROOM_FOR_NOTE: Final = 78
WASTE_GROWS: Final = timedelta(seconds=30)
"""After so long the waste of idle nodes is worked out anew, though nothing changed."""


class CostPane(Pane):
    """Estimates in US dollars: chips x dated price x the time for which nodes were READY."""

    pane_id: ClassVar[PaneId] = PaneId.COST
    title: ClassVar[str] = "Cost"
    help_text: ClassVar[str] = (
        "All money is an estimate: chips x dated list price x the time for which a node was seen "
        "READY; network, disks and buckets are not in it. $/H is the rate now, SO FAR the sum. "
        "≥ means at least that much, because a part is unknown; - means that nothing is known. "
        "~ marks a price that is an example only: spot prices change at any time. WASTED is what "
        "idle nodes, steps lost to preemptions and failed attempts cost; AT TARGET what a run will "
        "have cost at its target step. The lines below the table say where the selected row's "
        "dollars went, and where its price comes from and of which day it is. {cost-view} shows "
        "the runs by owner."
    )

    DEFAULT_CSS = """
    CostPane { layout: vertical; }
    CostPane .detail { height: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._ledger = Ledger()
        self._lines: dict[str, LedgerLine] = {}
        self._shown: tuple[LedgerLine, ...] = ()
        self._filter = ""
        self._by_owner = False
        self._worked_out: datetime | None = None
        self._words = MoneyWords()

    def compose(self) -> ComposeResult:
        """Lay out the table and the lines about the selected price."""
        self._words = MoneyWords(self.context.options.ascii)
        self._view = RowView(self, plain=self.context.options.ascii)
        self._detail = SpanView(self._draw_detail, classes="detail")
        yield self._view
        yield self._detail

    def on_mount(self) -> None:
        """Show what is known already."""
        self._work_out(None)

    def on_resize(self) -> None:
        """Give the lines about the price their room, if there is any."""
        height = self.size.height
        rows = 0 if height < LEAST_ROWS_FOR_DETAIL else DETAIL_ROWS
        self._detail.styles.height = MORE_ROWS if height >= LEAST_ROWS_FOR_MORE else rows

    def apply(self, changes: ChangeSet) -> None:
        """Work out the costs anew where something bears on them."""
        if not self.is_mounted:
            return
        if changes.nodes or changes.runs:
            runs = self._runs_of(changes.nodes)
            self._work_out(None if runs is None else runs | changes.runs)
        elif PRICES in changes.sources:
            self._work_out(frozenset())
        elif changes.connection or not self._lines:
            self._sync()

    def tick(self, now: datetime) -> None:
        """Let the dollars go on."""
        if not self._ledger.billed:
            return
        wasting = self._ledger.wasting()
        if wasting and self._worked_out and now - self._worked_out > WASTE_GROWS:
            self._work_out(wasting)
        self._view.sync()
        self._detail.sync()

    def selection_changed(self, subject: Subject | None) -> None:
        """Go to the row of what was selected."""
        if subject is None or not self.is_mounted:
            return
        for key in (f"node:{subject.node}", f"run:{subject.run}"):
            if key in self._lines and not self._view.has_focus:
                self._view.select(key)
                return

    def filter(self, text: str) -> None:
        """Show only matching rows."""
        self._filter = text
        self._sync()

    def perform(self, action_id: str) -> None:
        """Show the runs, or whose they are."""
        if action_id == "cost-view":
            self._by_owner = not self._by_owner
            self._sync()

    def empty_reason(self) -> str:
        """Say why there is no row."""
        if self._lines:
            return ""
        if self._ledger.lines:
            return "No row matches the filter."
        return (
            source_problem(self.context, NODES)
            or nothing_runs(self.context, self.host.hints)
            or "Nothing has cost anything yet."
        )

    def copy_text(self) -> str:
        """Return the selected row in words."""
        line = self._lines.get(self._view.selected)
        if line is None:
            return ""
        return f"{self._title_of(line)} {self._money(line)}; {self._about(line)}"

    def title_note(self) -> str:
        """Say what is spent per hour."""
        rate = self._rate() if self._ledger.billed else ""
        return f"{rate} by owner".lstrip() if self._by_owner else rate

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Tell about the price of the row that the cursor is on now."""
        event.stop()
        self._detail.sync()

    # What the table asks for.

    def keys(self) -> Sequence[str]:
        """Return the keys of all rows."""
        return tuple(self._lines)

    def head(self, width: int) -> list[Spans]:
        """Return the total, and the titles or the reason why there is no row."""
        summary = self._summary(width)
        reason = self.empty_reason()
        if reason:
            lines = [(Span(line, "muted"),) for line in wrap_words(reason, max(1, width))]
            return [*([summary] if self._ledger.lines else []), *lines]
        late = [self._of_late()] if self.size.height >= LEAST_ROWS_FOR_DETAIL else []
        return [summary, *late, header_of(columns_that_fit(COLUMNS, width))]

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        line = self._lines[key]
        columns = columns_that_fit(COLUMNS, width)
        words, now = self._words, self.context.now()
        indent = "" if line.is_head else "  "
        state = safe_text(line.state, 40)
        price = line.cost.price
        cells = {
            "NAME": Span(indent + self._title_of(line), "", bold=line.is_head),
            "TYPE": Span(safe_text(line.kind, 40), "muted"),
            "$/H": Span(
                words.dollars(line.cost.per_hour_usd, at_least=line.rate_is_partial),
                "",
                bold=line.is_head,
            ),
            "SO FAR": self._so_far(line),
            "TODAY": Span(words.amount(line.today_at(now)), "muted"),
            "MONTH": Span(words.amount(line.month_at(now)), "muted"),
            "WASTED": self._wasted(line),
            "AT TARGET": Span(words.projected(line.money) if line.money else "", "muted"),
            "$/1K STEPS": Span(_per_1000(line, words), "muted"),
            "PER CHIP": Span(self._per_chip(price, line), "muted"),
            "PRICE OF": Span(_day(price), "muted"),
        }
        if state:
            mark = self.host.mark_of(line.state)
            cells["STATE"] = Span(f"{mark} {state}", look_of(line.state).variable)
        return row_of(columns, cells)

    # How things are put.

    def _summary(self, width: int) -> Spans:
        total, billed = self._ledger.total, self._ledger.billed
        so_far = self._ledger.accrued_at(self.context.now())
        connection = self.context.snapshot.connection
        is_emulator = connection is not None and connection.is_emulator
        note = "; emulated, so nothing is charged" if is_emulator else ""
        if width < ROOM_FOR_NOTE:
            note = ", emulated" if is_emulator else ""
        return (
            Span(self._rate(), "state-ready", bold=True),
            Span(f" now, {billed} billed  ", "muted"),
            Span(self._words.dollars(so_far, at_least=total.is_lower_bound), "", bold=True),
            Span(f" so far, estimated{note}", "muted"),
        )

    def _of_late(self) -> Spans:
        """Return what of it belongs to this day and month, and what was wasted."""
        words, now = self._words, self.context.now()
        waste = self._ledger.waste
        parts = words.waste_parts(waste)
        return (
            Span("today ", "muted"),
            Span(words.amount(self._ledger.today_at(now)), "muted"),
            Span(", this month ", "muted"),
            Span(words.amount(self._ledger.month_at(now)), "muted"),
            Span(", wasted ", "muted"),
            Span(words.waste(waste), "chart-warn" if waste.total_usd else "muted", bool(parts)),
            Span(f" ({parts})" if parts else "", "muted"),
        )

    def _rate(self) -> str:
        rate = self._ledger.total.per_hour_usd
        return f"{self._words.dollars(rate, at_least=self._ledger.rate_is_partial)}/h"

    def _work_out(self, runs: frozenset[str] | None) -> None:
        context = self.context
        self._ledger.update(context.snapshot, context.prices, context.now(), runs)
        self._worked_out = context.now()
        self._sync()

    def _runs_of(self, names: frozenset[str]) -> frozenset[str] | None:
        """Return the runs of nodes that came, went or changed, or None where one is forgotten."""
        snapshot = self.context.snapshot
        runs = set()
        for name in names:
            stone = snapshot.tombstones.get(name)
            node = snapshot.nodes.get(name) or (stone.node if stone else None)
            if node is None:
                return None
            runs.add(node.run or "")
        return frozenset(runs)

    def _sync(self) -> None:
        shown = {}
        self._shown = self._ledger.by_owner() if self._by_owner else self._ledger.lines
        for line in self._shown:
            if matches(self._filter, f"{self._title_of(line)} {line.state} {line.kind}"):
                shown[line.key] = line
        self._lines = shown
        self._view.sync()
        self._detail.sync()

    def _so_far(self, line: LedgerLine) -> Span:
        accrued = line.accrued_at(self.context.now())
        text = self._words.dollars(accrued, at_least=line.cost.is_lower_bound)
        if line.cap is None or accrued is None:
            return Span(text, "", bold=line.is_head)
        used = accrued / line.cap if line.cap > 0 else 1.0
        variable = "chart-bad" if used >= 1 else "chart-warn" if used >= NEARLY else ""
        return Span(text, variable, bold=True)

    def _wasted(self, line: LedgerLine) -> Span:
        if line.waste is None:
            return Span("")
        return Span(
            self._words.waste(line.waste), "chart-warn" if line.waste.total_usd else "muted"
        )

    def _title_of(self, line: LedgerLine) -> str:
        """Return a row's name; in watch mode owners have numbers, by their place in the list."""
        name = line.name
        if line.owner is not None and line.is_head and self.context.options.is_watch:
            owners = sorted({one.owner for one in self._shown if one.is_head and one.owner})
            name = f"owner {owners.index(line.owner) + 1}"
        return safe_text(name, 80)

    def _per_chip(self, price: Price | None, line: LedgerLine) -> str:
        if price is None:
            return "unknown" if line.is_one_life else ""
        return f"${price.per_chip_hour_usd:.3f}{'~' if price.is_example else ''}"

    def _money(self, line: LedgerLine) -> str:
        rate = self._words.dollars(line.cost.per_hour_usd, at_least=line.rate_is_partial)
        return f"{rate}/h, {self._so_far(line).text} so far"

    def _draw_detail(self, width: int, height: int) -> list[Spans]:
        line = self._lines.get(self._view.selected)
        if line is None:
            return []
        lines = wrap_words(self._about(line), max(1, width - 2))[:height]
        return [(Span(" "), Span(fit(text, width - 2), "muted")) for text in lines]

    def _about(self, line: LedgerLine) -> str:
        """Return where a row's dollars went, where its price comes from, what is not known."""
        about = self._words.about(line, self.context.now())
        return " ".join([about, *self._about_prices()])

    def _about_prices(self) -> list[str]:
        status = self.context.snapshot.sources.get(PRICES)
        if status is None or status.state is not SourceState.FAILING:
            return []
        heard = age(status.last_success, self.context.now(), step=60)
        return [
            f"The price catalogue does not answer (last answer: {heard}); bundled prices stand in."
        ]


def _per_1000(line: LedgerLine, words: MoneyWords) -> str:
    known = line.money.per_1000_steps if line.money else None
    return "" if known is None else words.amount(known)


def _day(price: Price | None) -> str:
    return str(price.as_of) if price and price.as_of else ""
