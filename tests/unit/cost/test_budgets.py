"""Budgets beside our estimate."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.tui.factories import list_nodes, make_node
from tpudash.cost.budgets import budget_state, check_draft, describe, parse_threshold, period_of
from tpudash.cost.lives import Life, lives_of
from tpudash.cost.prices import PriceBook
from tpudash.domain.budget import Budget, BudgetDraft, SpendBasis, Threshold
from tpudash.errors import UsageError
from tpudash.store.store import Store

NOW = datetime(2026, 12, 11, tzinfo=UTC)
BUDGET = Budget(
    name="billingAccounts/1/budgets/2",
    display_name="TPU",
    amount=27.0,
    currency="USD",
    rules=(Threshold(0.5), Threshold(1.0), Threshold(1.0, SpendBasis.FORECASTED)),
)


def lives(hours: float = 10) -> tuple[Life, ...]:
    """One v2-8 on spot, READY for some hours: $1.35 each."""
    store = Store()
    begin = NOW - timedelta(hours=hours)
    list_nodes(store, make_node("demo-1", "CREATING", create_time=begin), at=begin)
    list_nodes(store, make_node("demo-1", create_time=begin), at=begin + timedelta(seconds=1))
    return lives_of(store.snapshot, PriceBook.bundled(), NOW + timedelta(seconds=1))


def test_thresholds_are_crossed_by_estimate_and_by_forecast() -> None:
    state = budget_state(BUDGET, lives(), 1.35, NOW)
    assert state.spent_usd == pytest.approx(13.5, abs=0.01)
    assert state.share == pytest.approx(0.5, abs=0.001)
    days = 21
    assert state.forecast_usd == pytest.approx(13.5 + days * 24 * 1.35, abs=0.01)
    assert describe(state.crossed) == "100 % forecast"
    later = budget_state(BUDGET, lives(10.1), 1.35, NOW)
    assert describe(later.crossed) == "50 %, 100 % forecast"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"currency": "EUR"}, "it is in EUR, and estimates are in USD"),
        ({"amount": None}, "its amount is what was spent in the period before"),
        ({"period": "FORTNIGHT"}, "its period is FORTNIGHT"),
        ({"amount": 0.0}, "no amount"),
    ],
)
def test_what_cannot_be_compared_says_why(changes: dict[str, object], why: str) -> None:
    state = budget_state(replace(BUDGET, **changes), lives(), 1.35, NOW)  # type: ignore[arg-type]
    assert (state.share, state.crossed, state.why_not) == (None, (), why)


@pytest.mark.parametrize(
    ("period", "begin", "end"),
    [
        ("MONTH", (2026, 12, 1), (2027, 1, 1)),
        ("QUARTER", (2026, 10, 1), (2027, 1, 1)),
        ("YEAR", (2026, 1, 1), (2027, 1, 1)),
        ("2026-11-15 to 2026-12-14", (2026, 11, 15), (2026, 12, 15)),
        ("2026-11-15 to open", (2026, 11, 15), None),
    ],
)
def test_periods(
    period: str, begin: tuple[int, int, int], end: tuple[int, int, int] | None
) -> None:
    first, last = period_of(replace(BUDGET, period=period), NOW)
    assert first == datetime(*begin, tzinfo=UTC)
    assert last == (None if end is None else datetime(*end, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.5", Threshold(0.5)),
        ("90%", Threshold(0.9)),
        ("100%:forecast", Threshold(1.0, SpendBasis.FORECASTED)),
        ("1.2:current", Threshold(1.2)),
    ],
)
def test_thresholds_are_read(text: str, rule: Threshold) -> None:
    assert parse_threshold(text) == rule


@pytest.mark.parametrize("text", ["", "half", "0.5:sometimes", "%"])
def test_what_is_no_threshold_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


@pytest.mark.parametrize(
    "draft",
    [
        BudgetDraft(display_name="x" * 61),
        BudgetDraft(display_name=""),
        BudgetDraft(amount=0),
        BudgetDraft(amount=float("nan")),
        BudgetDraft(amount=float("inf")),
        BudgetDraft(rules=(Threshold(50),)),
        BudgetDraft(rules=(Threshold(0),)),
    ],
)
def test_drafts_that_the_api_would_refuse(draft: BudgetDraft) -> None:
    with pytest.raises(UsageError):
        check_draft(draft)
