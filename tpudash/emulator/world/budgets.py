"""Budgets of the one billing account, as `google.cloud.billing.budgets.v1` shapes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.billing.budgets_v1.types import budget_model
from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, invalid_field, not_found
from tpudash.emulator.identifiers import project_number

if TYPE_CHECKING:
    from tpudash.emulator.identifiers import Identifiers
    from tpudash.emulator.messages import Message
    from tpudash.emulator.world.state_file import StateFile

Budget: Any = budget_model.Budget.pb()
BILLING_ACCOUNT = "billingAccounts/012345-6789AB-CDEF01"
_KIND = "budget"
_MAX_DISPLAY_NAME = 60


class Budgets:
    """The table of budgets."""

    def __init__(self, identifiers: Identifiers, state: StateFile) -> None:
        self._identifiers = identifiers
        self._state = state
        self._table: dict[str, Message] = {
            name: Budget.FromString(value) for name, value, _ in state.load(_KIND)
        }

    def under(self, account: str) -> list[Message]:
        """Return the budgets of a billing account in name order."""
        _check_account(account)
        return [self._table[name] for name in sorted(self._table)]

    def get(self, name: str) -> Message:
        """Return a budget.

        Raises:
            ApiError: NOT_FOUND.
        """
        if name not in self._table:
            raise not_found(name)
        return self._table[name]

    def create(self, account: str, wanted: Message) -> Message:
        """Add a budget and return it with its name and etag."""
        _check_account(account)
        _check(wanted)
        budget = Budget()
        budget.CopyFrom(wanted)
        number = self._identifiers.unique_number()
        budget.name = f"{account}/budgets/{number:032x}"
        return self._save(budget)

    def update(self, wanted: Message, mask: Any) -> Message:
        """Change a budget: the masked fields, or all that are set."""
        current = self.get(wanted.name)
        if wanted.etag and wanted.etag != current.etag:
            raise ApiError(code_pb2.ABORTED, "The budget was changed by someone else.")
        changed = Budget()
        changed.CopyFrom(current)
        if mask.paths:
            mask.MergeMessage(wanted, changed, True, True)
        else:
            changed.CopyFrom(wanted)
        changed.name = wanted.name
        _check(changed)
        return self._save(changed)

    def delete(self, name: str) -> None:
        """Remove a budget."""
        self.get(name)
        del self._table[name]
        self._state.remove(_KIND, name)

    def _save(self, budget: Message) -> Message:
        # Projects may be given by id, and are kept and shown by number.
        numbered = [_by_number(project) for project in budget.budget_filter.projects]
        budget.budget_filter.projects[:] = numbered
        budget.etag = f"{self._identifiers.unique_number():x}"
        self._table[budget.name] = budget
        self._state.put(_KIND, budget.name, budget.SerializeToString())
        return budget


def _by_number(project: str) -> str:
    name = project.removeprefix("projects/")
    return project if name.isdecimal() else f"projects/{project_number(name)}"


def _check_account(account: str) -> None:
    if account != BILLING_ACCOUNT:
        raise not_found(account)


def _check(budget: Message) -> None:
    if len(budget.display_name) > _MAX_DISPLAY_NAME:
        raise invalid_field("budget.display_name", f"longer than {_MAX_DISPLAY_NAME} characters")
    if budget.amount.WhichOneof("budget_amount") is None:
        raise invalid_field("budget.amount", "required")
    for rule in budget.threshold_rules:
        if rule.threshold_percent < 0:
            raise invalid_field("budget.threshold_rules", "threshold_percent must not be negative")
