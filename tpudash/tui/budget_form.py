"""What the budget form means: reading it, checking it, and saying what would be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.cost.budgets import (
    USUAL_THRESHOLDS,
    check_draft,
    describe,
    parse_threshold,
    threshold_text,
)
from tpudash.domain.budget import CURRENCY, LONGEST_NAME, BudgetDraft
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from tpudash.domain.budget import Budget, Threshold

SERVICE: Final = "google.cloud.billing.budgets.v1.BudgetService"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFields:
    """The fields as they stand in the form."""

    name: str = ""
    amount: str = ""
    thresholds: str = ", ".join(threshold_text(rule) for rule in USUAL_THRESHOLDS)


def fields_of(budget: Budget | None, project: str) -> BudgetFields:
    """Return the fields of a budget as it is, or of a new one."""
    if budget is None:
        return BudgetFields(name=f"TPU {project}"[:LONGEST_NAME])
    amount = "" if budget.amount is None else f"{budget.amount:.2f}".removesuffix(".00")
    rules = ", ".join(threshold_text(rule) for rule in budget.rules)
    return BudgetFields(name=budget.display_name, amount=amount, thresholds=rules)


def problems_of(fields: BudgetFields, budget: Budget | None) -> dict[str, str]:
    """Return what is wrong, by field."""
    found = {
        "name": _problem(BudgetDraft(display_name=fields.name.strip())),
        "amount": _amount_problem(fields.amount, budget),
        "thresholds": _thresholds_problem(fields.thresholds),
    }
    return {field: problem for field, problem in found.items() if problem}


def draft_of(fields: BudgetFields, budget: Budget | None) -> BudgetDraft:
    """Return what is asked for; of a budget that is there, only what differs from it.

    Only for fields without problems.
    """
    name, rules = fields.name.strip(), _rules(fields.thresholds)
    amount = float(fields.amount) if fields.amount.strip() else None
    if budget is None:
        return BudgetDraft(name, amount, rules)
    is_same_amount = amount is None or (
        budget.amount is not None and abs(amount - budget.amount) < 0.005
    )
    return BudgetDraft(
        display_name=None if name == budget.display_name else name,
        amount=None if is_same_amount else amount,
        rules=None if rules == budget.rules else rules,
    )


def words_of(
    draft: BudgetDraft, budget: Budget | None, account: str, project: str
) -> tuple[str, ...]:
    """Return the exact call and what it means, a sentence each."""
    method = "CreateBudget" if budget is None else "UpdateBudget"
    target = f"in {account}" if budget is None else budget.name
    currency = CURRENCY if budget is None else budget.currency or CURRENCY
    lines = [f"{SERVICE}/{method}", target]
    if draft.display_name is not None:
        lines.append(f"Name: {draft.display_name}")
    if draft.amount is not None:
        before = ""
        if budget is not None and budget.amount is not None:
            before = f" (was {budget.amount:,.2f})"
        lines.append(f"Amount: {draft.amount:,.2f} {currency}{before}")
    if draft.rules is not None:
        lines.append(f"It mails the billing administrators at {describe(draft.rules)}")
    if budget is None:
        lines.append(f"It counts project {project}, by the calendar month.")
    return (*lines, "A budget only tells, hours later; it stops and deletes nothing.")


def _problem(draft: BudgetDraft) -> str:
    try:
        check_draft(draft)
    except UsageError as error:
        return str(error)
    return ""


def _amount_problem(text: str, budget: Budget | None) -> str:
    if not text.strip() and budget is not None and budget.amount is None:
        return ""
    try:
        amount = float(text)
    except ValueError:
        currency = (budget.currency if budget else "") or CURRENCY
        return f"an amount of {currency}, such as 100"
    return _problem(BudgetDraft(amount=amount))


def _thresholds_problem(text: str) -> str:
    try:
        rules = _rules(text)
    except UsageError as error:
        return f"{error}: {error.hint}" if error.hint else str(error)
    return _problem(BudgetDraft(rules=rules)) if rules else "at least one, such as 50%, 90%"


def _rules(text: str) -> tuple[Threshold, ...]:
    parts = [part.strip() for part in text.split(",")]
    return tuple(parse_threshold(part) for part in parts if part)
