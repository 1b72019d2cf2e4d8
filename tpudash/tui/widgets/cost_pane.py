"""The cost pane: dollars for each run and node, now and so far, with the source of each price."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.store.snapshot import NODES, PRICES, SourceState
from tpudash.tui.looks import look_of
from tpudash.tui.pane import Pane, PaneId, Subject
from tpudash.tui.widgets.cost_pane_ledger import Ledger, LedgerLine
from tpudash.tui.widgets.empty_reason import nothing_runs, source_problem
from tpudash.tui.widgets.row_view import Column, RowView, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, fit, wrap_words
from tpudash.tui.widgets.word_filter import matches
from tpudash.wording.format import age, dollars
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
    Column("PER CHIP", 9, right=True, rank=5),
    Column("PRICE OF", 10, rank=6),
)
DETAIL_ROWS: Final = 3
LEAST_ROWS_FOR_DETAIL: Final = 11
ROOM_FOR_NOTE: Final = 78
ROOM_FOR_MONTH: Final = 110


class CostPane(Pane):
    """Estimates in US dollars: chips x dated price x the time for which nodes were READY."""

    pane_id: ClassVar[PaneId] = PaneId.COST
    title: ClassVar[str] = "Cost"
    help_text: ClassVar[str] = (
        "All money is an estimate: chips x dated list price x the time for which a node was seen "
        "READY; network, disks and buckets are not in it. $/H is the rate now, SO FAR the sum. "
        "≥ means at least that much, because a part is unknown; - means that nothing is known. "
        "~ marks a price that is an example only: spot prices change at any time. The lines below "
        "the table say where the selected price comes from and of which day it is."
    )

    DEFAULT_CSS = """
    CostPane { layout: vertical; }
    CostPane .detail { height: auto; max-height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._ledger = Ledger()
        self._lines: dict[str, LedgerLine] = {}
        self._filter = ""

    def compose(self) -> ComposeResult:
        """Lay out the table and the lines about the selected price."""
        self._view = RowView(self, plain=self.context.options.ascii)
        self._detail = SpanView(self._draw_detail, classes="detail")
        yield self._view
        yield self._detail

    def on_mount(self) -> None:
        """Show what is known already."""
        self._work_out(None)

    def on_resize(self) -> None:
        """Give the lines about the price their room, if there is any."""
        self._detail.styles.height = DETAIL_ROWS if self.size.height >= LEAST_ROWS_FOR_DETAIL else 0

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

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Let the dollars go on."""
        if self._ledger.billed:
            self._view.sync()

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
        return f"{safe_text(line.name)} {self._money(line)}; {self._about(line)}"

    def title_note(self) -> str:
        """Say what is spent per hour."""
        return self._rate() if self._ledger.billed else ""

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
        return [summary, header_of(columns_that_fit(COLUMNS, width))]

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        line = self._lines[key]
        columns = columns_that_fit(COLUMNS, width)
        indent = "" if line.is_head else "  "
        state = safe_text(line.state, 40)
        price = line.cost.price
        cells = {
            "NAME": Span(indent + safe_text(line.name, 80), "", bold=line.is_head),
            "TYPE": Span(safe_text(line.kind, 40), "muted"),
            "$/H": Span(
                self._dollars(line.cost.per_hour_usd, at_least=line.rate_is_partial),
                "",
                bold=line.is_head,
            ),
            "SO FAR": self._so_far(line),
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
            Span(self._dollars(so_far, at_least=total.is_lower_bound), "", bold=True),
            Span(f" so far{self._of_late(width)}, estimated{note}", "muted"),
        )

    def _of_late(self, width: int) -> str:
        """Return what of it belongs to this day and month, where there is room for that."""
        if width < ROOM_FOR_MONTH:
            return ""
        today, month = self._ledger.today, self._ledger.month
        return (
            f" ({self._dollars(today.usd, at_least=today.is_lower_bound)} today, "
            f"{self._dollars(month.usd, at_least=month.is_lower_bound)} this month)"
        )

    def _rate(self) -> str:
        rate = self._ledger.total.per_hour_usd
        return f"{self._dollars(rate, at_least=self._ledger.rate_is_partial)}/h"

    def _work_out(self, runs: frozenset[str] | None) -> None:
        context = self.context
        self._ledger.update(context.snapshot, context.prices, context.now(), runs)
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
        for line in self._ledger.lines:
            if matches(self._filter, f"{line.key} {line.name} {line.state} {line.kind}"):
                shown[line.key] = line
        self._lines = shown
        self._view.sync()
        self._detail.sync()

    def _so_far(self, line: LedgerLine) -> Span:
        accrued = line.accrued_at(self.context.now())
        text = self._dollars(accrued, at_least=line.cost.is_lower_bound)
        if line.cap is None or accrued is None:
            return Span(text, "", bold=line.is_head)
        used = accrued / line.cap if line.cap > 0 else 1.0
        variable = "chart-bad" if used >= 1 else "chart-warn" if used >= 0.8 else ""
        return Span(text, variable, bold=True)

    def _per_chip(self, price: Price | None, line: LedgerLine) -> str:
        if price is None:
            return "" if line.is_head else "unknown"
        return f"${price.per_chip_hour_usd:.3f}{'~' if price.is_example else ''}"

    def _dollars(self, amount: float | None, *, at_least: bool = False) -> str:
        text = dollars(amount, at_least=at_least and amount is not None)
        return text.replace("≥", ">=") if self.context.options.ascii else text

    def _money(self, line: LedgerLine) -> str:
        rate = self._dollars(line.cost.per_hour_usd, at_least=line.rate_is_partial)
        return f"{rate}/h, {self._so_far(line).text} so far"

    def _draw_detail(self, width: int, height: int) -> list[Spans]:
        line = self._lines.get(self._view.selected)
        if line is None:
            return []
        lines = wrap_words(self._about(line), max(1, width - 2))[:height]
        return [(Span(" "), Span(fit(text, width - 2), "muted")) for text in lines]

    def _about(self, line: LedgerLine) -> str:
        """Return where the price of a row comes from, and what is not known."""
        parts = []
        price = line.cost.price
        if price is not None:
            kind = load_catalog().find(line.kind.split(" ")[0])
            chips = f"{kind.chips} chips x " if kind else ""
            as_of = f", of {price.as_of}" if price.as_of else ", of an unknown day"
            parts.append(
                f"{chips}${price.per_chip_hour_usd:.4f} per chip-hour, {price.scheduling} in "
                f"{safe_text(price.region, 40)}: {safe_text(price.source, 120)}{as_of}."
            )
            if price.is_example:
                parts.append("~ An example: spot prices change at any time.")
            if price.read is not None:
                parts.append(f"Read {age(price.read, self.context.now(), step=60)}.")
            if price.change is not None:
                parts.append(
                    f"It jumped by {price.change:+.0%}, from ${price.before_usd:.4g}, of late."
                )
        elif line.is_head:
            parts.append("Sum of the rows below.")
        else:
            parts.append("No price is known for this type, place and scheduling.")
        if line.cost.is_lower_bound:
            parts.append("At least this much: a part of its time or price is unknown.")
        if line.cap is not None:
            parts.append(f"Its owner capped it at {dollars(line.cap)}.")
        return " ".join([*parts, *self._about_prices()])

    def _about_prices(self) -> list[str]:
        status = self.context.snapshot.sources.get(PRICES)
        if status is None or status.state is not SourceState.FAILING:
            return []
        heard = age(status.last_success, self.context.now(), step=60)
        return [
            f"The price catalogue does not answer (last answer: {heard}); bundled prices stand in."
        ]


def _day(price: Price | None) -> str:
    return str(price.as_of) if price and price.as_of else ""
