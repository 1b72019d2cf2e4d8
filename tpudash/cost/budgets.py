"""Budgets beside our own estimate. What was really spent is not in the budgets' API.

Google counts calendar periods in Pacific time; here they are those of UTC, which is some hours off
at either end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from tpudash.cost.report import cost_between, start_of_month
from tpudash.domain.budget import CURRENCY, LONGEST_NAME, BudgetDraft, SpendBasis, Threshold
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.cost.lives import Life
    from tpudash.domain.budget import Budget

MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
USUAL_THRESHOLDS: Final = (Threshold(0.5), Threshold(0.9), Threshold(1.0))
NO_COMPARISON: Final = "spend so far is not in the budgets API"


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget with what we estimate of its period.

    Attributes:
        spent_usd: Estimated TPU cost of this project in the budget's period so far.
        forecast_usd: That at the period's end, at the present rate.
        share: Which share of the amount is spent, or None where it can't be compared.
        crossed: The thresholds that are crossed by estimate.
        why_not: Why it can't be compared, or "".
    """

    budget: Budget
    spent_usd: float | None
    is_lower_bound: bool
    forecast_usd: float | None
    share: float | None
    crossed: tuple[Threshold, ...]
    why_not: str = ""


def budget_state(
    budget: Budget, lives: Iterable[Life], rate_usd: float | None, now: datetime
) -> BudgetState:
    """Return how a budget stands by our estimate.

    Args:
        budget: The budget.
        lives: Everything of this project that costs.
        rate_usd: What is spent an hour now, or None where that is not known.
        now: The present.
    """
    start, end = period_of(budget, now)
    why_not = _why_not(budget, start)
    if start is None:
        return BudgetState(budget, None, True, None, None, (), why_not)
    spent = cost_between(lives, start, now)
    forecast = None
    if spent.usd is not None and rate_usd is not None and end is not None:
        hours = max(0.0, (end - now).total_seconds() / 3600)
        forecast = spent.usd + rate_usd * hours
    if why_not or spent.usd is None or not budget.amount:
        why_not = why_not or (
            "nothing is known of what was spent" if budget.amount else "no amount"
        )
        return BudgetState(budget, spent.usd, spent.is_lower_bound, forecast, None, (), why_not)
    measured = {SpendBasis.CURRENT: spent.usd, SpendBasis.FORECASTED: forecast}
    crossed = []
    for rule in budget.rules:
        amount = measured.get(SpendBasis(rule.basis)) if rule.basis in measured else None
        if amount is not None and amount >= rule.share * budget.amount:
            crossed.append(rule)
    return BudgetState(
        budget,
        spent.usd,
        spent.is_lower_bound,
        forecast,
        spent.usd / budget.amount,
        tuple(crossed),
    )


def _why_not(budget: Budget, start: datetime | None) -> str:
    if start is None:
        return f"its period is {budget.period}"
    if budget.amount is None:
        return "its amount is what was spent in the period before"
    if budget.currency and budget.currency != CURRENCY:
        return f"it is in {budget.currency}, and estimates are in {CURRENCY}"
    return ""


def period_of(budget: Budget, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return when a budget's period began and when it ends; None where that is not known."""
    months = MONTHS.get(budget.period)
    if months is None:
        first, _, last = budget.period.partition(" to ")
        begin, end = _day(first), _day(last)
        return begin, None if end is None else end + timedelta(days=1)
    this = start_of_month(now)
    begin = this.replace(month=(this.month - 1) // months * months + 1)
    month = begin.month + months
    end = begin.replace(year=begin.year + (month - 1) // 12, month=(month - 1) % 12 + 1)
    return begin, end


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def check_draft(draft: BudgetDraft) -> BudgetDraft:
    """Return a draft that the API would take.

    Raises:
        UsageError: A name, an amount or a threshold that can't be.
    """
    name = draft.display_name
    if name is not None and not 0 < len(name) <= LONGEST_NAME:
        raise UsageError(f"a budget's name has 1 to {LONGEST_NAME} characters", detail=repr(name))
    if draft.amount is not None and not 0 < draft.amount < 1e12:
        raise UsageError("a budget's amount must be above 0", detail=f"{draft.amount:g}")
    for rule in draft.rules or ():
        if not 0 < rule.share <= 10:
            raise UsageError(
                "a threshold is a share of the amount",
                detail=f"{rule.share:g}",
                hint="0.5 is 50 %; write --threshold 0.5 or --threshold 50%",
            )
    return draft


def parse_threshold(text: str) -> Threshold:
    """Read a threshold such as `0.5`, `90%`, or `1.0:forecast`.

    Raises:
        UsageError: It is none.
    """
    amount, _, basis = text.strip().partition(":")
    bases = {
        "": SpendBasis.CURRENT,
        "current": SpendBasis.CURRENT,
        "forecast": SpendBasis.FORECASTED,
    }
    try:
        share = float(amount.removesuffix("%")) / (100 if amount.endswith("%") else 1)
        return Threshold(share, bases[basis])
    except (ValueError, KeyError):
        raise UsageError(
            f"{text!r} is no threshold", hint="write 0.5, 90%, or 100%:forecast"
        ) from None


def threshold_text(rule: Threshold) -> str:
    """Return a threshold as `parse_threshold` reads it, such as `90%` or `100%:forecast`."""
    basis = ":forecast" if rule.basis == SpendBasis.FORECASTED else ""
    return f"{rule.share * 100:.10g}%{basis}"


def describe(rules: Sequence[Threshold]) -> str:
    """Return thresholds as text, such as `50 %, 90 %, 100 % forecast`."""
    return ", ".join(
        f"{rule.share * 100:g} %" + (" forecast" if rule.basis == SpendBasis.FORECASTED else "")
        for rule in rules
    )
