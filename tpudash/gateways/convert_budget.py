"""Budgets: from and to `google.cloud.billing.budgets.v1.Budget`.

Source: google/cloud/billing/budgets/v1/budget_model.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.domain.budget import CURRENCY, Budget, BudgetScope, SpendBasis, Threshold
from tpudash.gateways.convert import LazyObject

if TYPE_CHECKING:
    from tpudash.domain.budget import BudgetDraft

NANOS = 1_000_000_000


def budget_of(message: Any, *, is_scoped: bool = False) -> Budget:
    """Convert one raw Budget message.

    Args:
        message: The message.
        is_scoped: Whether the API listed it as one of this project.
    """
    kind = message.amount.WhichOneof("budget_amount")
    money = message.amount.specified_amount
    return Budget(
        name=message.name,
        display_name=message.display_name,
        amount=money.units + money.nanos / NANOS if kind == "specified_amount" else None,
        currency=money.currency_code,
        rules=tuple(_rule_of(rule) for rule in message.threshold_rules),
        period=_period_of(message.budget_filter),
        scope=_scope_of(message.budget_filter, is_scoped=is_scoped),
        only_services=bool(message.budget_filter.services or message.budget_filter.labels),
        etag=message.etag,
        raw=LazyObject(message),
    )


def covers_account(message: Any) -> bool:
    """Whether a raw Budget counts the whole account, and so every project of it."""
    chosen = message.budget_filter
    return not (chosen.projects or chosen.resource_ancestors or chosen.subaccounts)


def _scope_of(chosen: Any, *, is_scoped: bool) -> BudgetScope | None:
    if is_scoped:
        return BudgetScope.PROJECTS if len(chosen.projects) > 1 else BudgetScope.PROJECT
    is_account = not (chosen.projects or chosen.resource_ancestors or chosen.subaccounts)
    return BudgetScope.ACCOUNT if is_account else None


def _rule_of(rule: Any) -> Threshold:
    names = rule.DESCRIPTOR.fields_by_name["spend_basis"].enum_type.values_by_number
    known = names.get(rule.spend_basis)
    basis = known.name if known is not None else str(rule.spend_basis)
    return Threshold(
        rule.threshold_percent, SpendBasis.CURRENT if basis == "BASIS_UNSPECIFIED" else basis
    )


def _period_of(chosen: Any) -> str:
    if chosen.WhichOneof("usage_period") == "custom_period":
        period = chosen.custom_period
        return f"{_day(period.start_date)} to {_day(period.end_date) or 'open'}"
    names = chosen.DESCRIPTOR.fields_by_name["calendar_period"].enum_type.values_by_number
    known = names.get(chosen.calendar_period)
    name = known.name if known is not None else str(chosen.calendar_period)
    return "MONTH" if name == "CALENDAR_PERIOD_UNSPECIFIED" else name


def _day(date: Any) -> str:
    return f"{date.year:04d}-{date.month:02d}-{date.day:02d}" if date.year else ""


def request_fields(draft: BudgetDraft, project: str | None, currency: str = CURRENCY) -> Any:
    """Return the fields of a Budget that a draft sets, as a request takes them.

    Args:
        draft: What is to be set.
        project: The project whose spending it counts; None leaves that as it is.
        currency: What the amount is in.
    """
    fields: dict[str, Any] = {}
    if draft.display_name is not None:
        fields["display_name"] = draft.display_name
    if draft.amount is not None:
        units, nanos = divmod(round(draft.amount * NANOS), NANOS)
        fields["amount"] = {
            "specified_amount": {"currency_code": currency, "units": units, "nanos": nanos}
        }
    if draft.rules is not None:
        fields["threshold_rules"] = [
            {"threshold_percent": rule.share, "spend_basis": str(rule.basis)}
            for rule in draft.rules
        ]
    if project is not None:
        fields["budget_filter"] = {"projects": [f"projects/{project}"]}
    return fields
