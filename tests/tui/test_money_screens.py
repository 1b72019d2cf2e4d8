"""Budgets and clean-up in the console: nothing is sent or deleted that was not shown and asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from textual.widgets import Button, Input

from tests.tui.conftest import Console
from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    NOW,
    FakeControl,
    list_nodes,
    make_attempt,
    make_holder,
    make_node,
    make_run,
    make_world,
    node_name,
    read_runs,
    report_source,
)
from tpudash.domain.budget import (
    Budget,
    BudgetDraft,
    BudgetScope,
    CoveringBudgets,
    SpendBasis,
    Threshold,
)
from tpudash.domain.control import Control
from tpudash.domain.run import RunState
from tpudash.errors import NotAllowedError, OutcomeUnknownError
from tpudash.store.store import Store
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.screens.budget_editor import BudgetEditor
from tpudash.tui.screens.budgets import BudgetsScreen
from tpudash.tui.screens.cleanup import CleanupScreen
from tpudash.tui.screens.confirm import ConfirmDialog
from tpudash.tui.screens.plan import PlanDialog

RULES = (Threshold(0.5), Threshold(1.0, SpendBasis.FORECASTED))
OURS = Budget(
    "billingAccounts/1-2/budgets/b1", "team TPU", 2.0, "USD", RULES, scope=BudgetScope.PROJECT
)
IN_EUROS = Budget(
    "billingAccounts/1-2/budgets/b2", "Konto", 50.0, "EUR", RULES, scope=BudgetScope.ACCOUNT
)


@dataclass
class FakeBudgets:
    """Cloud Billing as a screen sees it."""

    budgets: tuple[Budget, ...] = (OURS, IN_EUROS)
    error: Exception | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    async def covering(self) -> CoveringBudgets:
        self.calls.append(("covering",))
        if self.error is not None:
            raise self.error
        return CoveringBudgets("billingAccounts/1-2", self.budgets)

    async def create(self, account: str, draft: BudgetDraft) -> Budget:
        self.calls.append(("create", account, draft))
        return self._made(replace(OURS, display_name=draft.display_name or ""))

    async def update(self, budget: Budget, draft: BudgetDraft) -> Budget:
        self.calls.append(("update", budget.name, draft))
        return self._made(budget)

    def _made(self, budget: Budget) -> Budget:
        if self.error is not None:
            raise self.error
        return budget

    @property
    def changes(self) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] != "covering"]


async def open_budgets(it: Console) -> BudgetsScreen:
    await it.press("B")
    await it.until(lambda: isinstance(it.app.screen, BudgetsScreen))
    screen = it.app.screen
    assert isinstance(screen, BudgetsScreen)
    return screen


async def open_editor(it: Console, key: str) -> BudgetEditor:
    await open_budgets(it)
    await it.until(lambda: "team TPU" in it.screen_text or "No budget" in it.screen_text)
    await it.press(key)
    await it.until(lambda: isinstance(it.app.screen, BudgetEditor))
    editor = it.app.screen
    assert isinstance(editor, BudgetEditor)
    return editor


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_budgets_stand_beside_our_estimate(size: tuple[int, int]) -> None:
    async with console(size=size, ports=OperatorPorts(budgets=FakeBudgets())) as it:
        await open_budgets(it)
        await it.until(lambda: "team TPU" in it.screen_text)
        text = it.screen_text
        assert "2.00 USD" in text
        assert "50.00 EUR" in text
        assert "past 50 %" in text
        assert "not in the budgets API" in text
        await it.press("down")
        await it.until(lambda: "it is in EUR" in it.screen_text)


async def test_an_account_that_may_not_be_seen_is_said() -> None:
    error = NotAllowedError("You may not see the billing account", hint="Ask for billing.viewer.")
    async with console(ports=OperatorPorts(budgets=FakeBudgets(error=error))) as it:
        await open_budgets(it)
        await it.until(lambda: "may not see the billing account. Ask for" in it.screen_text)
        await it.press("n")
        assert isinstance(it.app.screen, BudgetsScreen)


async def test_a_new_budget_is_checked_shown_and_sent_once() -> None:
    port = FakeBudgets(budgets=())
    async with console(ports=OperatorPorts(budgets=port)) as it:
        editor = await open_editor(it, "n")
        go = editor.query_one("#budget-go", Button)
        assert go.disabled
        await it.press(*"12O")
        await it.until(lambda: "an amount of USD, such as 100" in it.screen_text)
        editor.query_one("#budget-amount", Input).value = "120"
        editor.query_one("#budget-thresholds", Input).value = "50%, 90%:forecast"
        await it.until(lambda: not go.disabled)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, ConfirmDialog))
        for fact in ("BudgetService/CreateBudget", "120.00 USD", "50 %, 90 % forecast"):
            assert fact in it.screen_text, fact
        await it.press("enter")
        assert port.changes == []
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, ConfirmDialog))
        await it.press("y")
        await it.until(lambda: port.changes)
        rules = (Threshold(0.5), Threshold(0.9, SpendBasis.FORECASTED))
        draft = BudgetDraft("TPU demo", 120.0, rules)
        assert port.changes == [("create", "billingAccounts/1-2", draft)]
        await it.until(lambda: isinstance(it.app.screen, BudgetsScreen))
        assert port.calls[-1] == ("covering",)


async def test_an_edit_sends_only_what_differs() -> None:
    port = FakeBudgets()
    async with console(ports=OperatorPorts(budgets=port)) as it:
        editor = await open_editor(it, "enter")
        await it.until(lambda: "Nothing is changed yet" in it.screen_text)
        editor.query_one("#budget-amount", Input).value = "75"
        await it.until(lambda: not editor.query_one("#budget-go", Button).disabled)
        await it.press("enter")
        await it.until(lambda: "75.00 USD (was 2.00)" in it.screen_text)
        await it.press("y")
        await it.until(lambda: port.changes)
        assert port.changes == [("update", OURS.name, BudgetDraft(amount=75.0))]


async def test_an_answer_that_does_not_come_is_said_and_nothing_typed_is_lost() -> None:
    port = FakeBudgets()
    async with console(ports=OperatorPorts(budgets=port)) as it:
        editor = await open_editor(it, "n")
        port.error = OutcomeUnknownError("It is not known whether the budget was made")
        editor.query_one("#budget-amount", Input).value = "75"
        await it.until(lambda: not editor.query_one("#budget-go", Button).disabled)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, ConfirmDialog))
        await it.press("y")
        await it.until(lambda: "It is not known whether" in it.screen_text)
        assert it.app.screen is editor
        assert editor.fields.amount == "75"


async def test_without_control_nothing_is_sent() -> None:
    port, control = FakeBudgets(), FakeControl()
    async with console(ports=OperatorPorts(budgets=port, control=control)) as it:
        editor = await open_editor(it, "n")
        editor.query_one("#budget-amount", Input).value = "75"
        await it.until(lambda: not editor.query_one("#budget-go", Button).disabled)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, ConfirmDialog))
        control.control = Control(is_ours=False, holder=make_holder())
        await it.press("y")
        await it.until(lambda: "another console has control" in it.screen_text)
        assert port.changes == []


def messy_world() -> Store:
    """A finished run whose node goes on, a node of nobody's, and a preempted one."""
    store = make_world()
    since = NOW - timedelta(hours=2)
    list_nodes(
        store,
        make_node("done-1", run="done", create_time=since),
        make_node("theirs", run=None, create_time=since),
        make_node("gone-1", "PREEMPTED", run="gone", create_time=since),
    )
    ended = NOW - timedelta(hours=1)
    record = make_attempt(1, run="done", state="FINISHED", ended=ended)
    read_runs(store, make_run("done", state=RunState.FINISHED, attempts=(record,)))
    report_source(store, "nodes")
    report_source(store, "runs")
    return store


async def open_cleanup(it: Console) -> CleanupScreen:
    await it.press("U")
    await it.until(lambda: isinstance(it.app.screen, CleanupScreen))
    screen = it.app.screen
    assert isinstance(screen, CleanupScreen)
    return screen


def ids(screen: CleanupScreen) -> set[str]:
    return {one.name.rsplit("/", 1)[-1] for one in screen.chosen}


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_only_what_tpudash_made_is_marked_and_each_row_says_why(
    size: tuple[int, int],
) -> None:
    async with console(messy_world(), size=size) as it:
        screen = await open_cleanup(it)
        text = it.screen_text
        for fact in ("done-1", "theirs", "gone-1", "idle", "dead", "2 of 3 marked", "$1.35/h"):
            assert fact in text, fact
        assert ids(screen) == {"done-1", "gone-1"}
        await it.press("end", "home")
        assert "its run done is FINISHED" in it.screen_text


async def test_deleting_shows_the_plan_first_and_wants_its_word() -> None:
    async with console(messy_world()) as it:
        await open_cleanup(it)
        await it.press("enter")
        await it.until(lambda: isinstance(it.app.screen, PlanDialog))
        dialog = it.app.screen
        assert isinstance(dialog, PlanDialog)
        await it.until(lambda: dialog.plan)
        planned = [call for call in it.operations.calls if call[0] == "plan_delete"]
        assert set(planned[0][1]) == {node_name("done-1"), node_name("gone-1")}
        await it.press("right", "enter")
        assert not [call for call in it.operations.calls if call[0] == "start"]


async def test_a_row_of_somebody_else_is_marked_by_hand_only() -> None:
    async with console(messy_world()) as it:
        screen = await open_cleanup(it)
        await it.press("a")
        assert ids(screen) == set()
        await it.press("a")
        assert ids(screen) == {"done-1", "gone-1"}
        screen._view.select(node_name("theirs"))
        await it.press("space")
        assert "theirs" in ids(screen)
        assert any("did not make theirs" in one for one in it.notices)
        # An unmarked row stays unmarked when the list is worked out again.
        screen._view.select(node_name("done-1"))
        await it.press("space")
        it.app.stage.tick()
        assert ids(screen) == {"theirs", "gone-1"}


async def test_without_the_runs_nothing_is_called_idle() -> None:
    store = messy_world()
    from tpudash.store.snapshot import SourceState

    report_source(store, "runs", SourceState.FAILING, title="The bucket is silent")
    async with console(store) as it:
        screen = await open_cleanup(it)
        assert "nothing is called leaked or idle" in it.screen_text
        assert ids(screen) == {"gone-1"}


async def test_an_empty_list_says_so() -> None:
    store = Store()
    list_nodes(store, make_node())
    read_runs(store, make_run())
    report_source(store, "nodes")
    report_source(store, "runs")
    async with console(store) as it:
        await open_cleanup(it)
        assert "Nothing is dead, leaked, idle" in it.screen_text
        await it.press("enter")
        assert isinstance(it.app.screen, CleanupScreen)
