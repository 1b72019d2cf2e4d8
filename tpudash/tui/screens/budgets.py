"""The budgets that cover this project, beside our own estimate."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding

from tpudash.cost.budgets import budget_state, describe
from tpudash.cost.estimate import project_totals
from tpudash.cost.lives import lives_of
from tpudash.errors import TpudashError
from tpudash.tui.screens.budget_editor import BudgetEditor
from tpudash.tui.screens.money_page import MoneyPage
from tpudash.tui.widgets.row_view import Column, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, wrap_words
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.binding import BindingType

    from tpudash.cost.budgets import BudgetState
    from tpudash.domain.budget import Budget, BudgetPort, CoveringBudgets
    from tpudash.store.changes import ChangeSet
    from tpudash.tui.acts import GuardedOperations
    from tpudash.tui.pane import HostApp

logger = logging.getLogger(__name__)

COLUMNS: Final = (
    Column("BUDGET", 14, grow=1),
    Column("COVERS", 8, rank=4),
    Column("PERIOD", 8, rank=3),
    Column("AMOUNT", 14, right=True),
    Column("ESTIMATE", 10, right=True),
    Column("OF IT", 6, right=True),
    Column("AT ITS END", 10, right=True, rank=2),
    Column("ALERTS AT", 18, rank=5),
)
ACTUAL_NOTE: Final = "What was really spent is not in the budgets API; ESTIMATE is ours."
ESTIMATE_NOTE: Final = (
    "ESTIMATE is this project's TPU cost by list prices, without discounts, disks and network."
)
KEYS: Final = "n new  enter edit  r read again  esc closes"


class BudgetsScreen(MoneyPage):
    """Reads once when it opens and after each change; estimates go on with what is known."""

    page_title = "Budgets of this project"
    page_keys = KEYS

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", show=False),
        Binding("enter,e", "edit", show=False),
        Binding("r", "read", show=False),
        Binding("q", "close", show=False),
    ]

    def __init__(self, host: HostApp, port: BudgetPort, operations: GuardedOperations) -> None:
        super().__init__(host, id="budgets-screen")
        self._port = port
        self._operations = operations
        self._found: CoveringBudgets | None = None
        self._problem = ""
        self._states: dict[str, BudgetState] = {}

    def on_mount(self) -> None:
        """Ask for the budgets."""
        self._view.focus()
        self.action_read()

    def action_read(self) -> None:
        """Read the budgets anew."""
        self.run_worker(self._read(), name="budgets", exclusive=True, exit_on_error=False)

    async def _read(self) -> None:
        try:
            self._found = await self._port.covering()
        except TpudashError as error:
            self._problem = " ".join(part for part in (f"{error}.", error.hint) if part)
        except Exception as error:
            logger.exception("reading the budgets failed")
            self._problem = f"The budgets could not be read: {error}"
        else:
            self._problem = ""
        self._work_out()

    def apply(self, changes: ChangeSet) -> None:
        """Bring the estimates up to date."""
        if changes.nodes or changes.runs:
            self._work_out()

    def tick(self, now: datetime) -> None:
        """Let the estimates go on while something is billed."""
        if any(node.is_billing for node in self.host.context.snapshot.nodes.values()):
            self._work_out(now)

    def _work_out(self, now: datetime | None = None) -> None:
        context = self.host.context
        at, book, snapshot = now or context.now(), context.prices, context.snapshot
        if self._found is not None:
            lives = lives_of(snapshot, book, at)
            rate = project_totals(snapshot, book, at).per_hour_usd
            found = (budget_state(one, lives, rate, at) for one in self._found.budgets)
            self._states = {state.budget.name: state for state in found}
        self.redraw()

    @property
    def _selected(self) -> Budget | None:
        state = self._states.get(self._view.selected)
        return state.budget if state else None

    def action_new(self) -> None:
        """Open the form of a new budget."""
        self._open(None)

    def action_edit(self) -> None:
        """Open the form of the selected budget."""
        if self._selected is not None:
            self._open(self._selected)

    def _open(self, budget: Budget | None) -> None:
        if self._found is None:
            self.host.notify(self._problem or "The budgets are not read yet.", markup=False)
            return
        editor = BudgetEditor(self.host, self._port, self._operations, self._found.account, budget)
        self.host.push_screen(editor, lambda made: self.action_read() if made else None)

    # What the table asks for.

    def keys(self) -> Sequence[str]:
        """Return the names of all budgets."""
        return tuple(self._states)

    def head(self, width: int) -> list[Spans]:
        """Return the titles, or the reason why there is no row."""
        reason = self._problem
        if not reason and self._found is None:
            reason = "Asking Cloud Billing ..."
        elif not reason and not self._states:
            reason = "No budget covers this project. n makes one: it mails, and stops nothing."
        words = wrap_words(safe_text(reason, 600), width)
        lines: list[Spans] = [(Span(line, "muted"),) for line in words]
        if not self._states:
            return lines
        note = (Span(ACTUAL_NOTE, "muted"),)
        return [*lines, note, header_of(columns_that_fit(COLUMNS, width))]

    def row(self, key: str, width: int) -> Spans:
        """Return one budget."""
        state = self._states[key]
        budget = state.budget
        look = _look(state)
        share = "-" if state.share is None else f"{state.share:.0%}"
        cells = {
            "BUDGET": Span(safe_text(budget.display_name or budget.budget_id, 80), "", True),
            "COVERS": Span(str(budget.scope or "?"), "muted"),
            "PERIOD": Span(safe_text(budget.period, 40), "muted"),
            "AMOUNT": Span(_amount(budget)),
            "ESTIMATE": Span(self.in_dollars(state.spent_usd, at_least=state.is_lower_bound)),
            "OF IT": Span(share, look, bool(state.crossed)),
            "AT ITS END": Span(self.in_dollars(state.forecast_usd), "muted"),
            "ALERTS AT": Span(describe(budget.rules) or "-", "muted"),
        }
        return row_of(columns_that_fit(COLUMNS, width), cells)

    def about_selected(self) -> str:
        """Return what is known of the selected budget, and what the estimate is."""
        state = self._states.get(self._view.selected)
        return ESTIMATE_NOTE if state is None else f"{self._about(state)} {ESTIMATE_NOTE}"

    def _about(self, state: BudgetState) -> str:
        budget = state.budget
        parts = [f"{safe_text(budget.display_name or budget.budget_id, 80)}:"]
        if state.crossed:
            parts.append(f"past {describe(state.crossed)} by estimate.")
        if state.why_not:
            parts.append(f"not compared, since {state.why_not}.")
        if budget.rules:
            parts.append(f"It mails at {describe(budget.rules)} (forecast: of the forecast).")
        if budget.only_services:
            parts.append("It counts some services only.")
        return " ".join(parts)


def _amount(budget: Budget) -> str:
    if budget.amount is None:
        return "last period's"
    return f"{budget.amount:,.2f} {safe_text(budget.currency, 4) or 'USD'}"


def _look(state: BudgetState) -> str:
    if state.share is not None and state.share >= 1:
        return "chart-bad"
    return "chart-warn" if state.crossed else ""
