"""Budgets of a billing account, as `google.cloud.billing.budgets.v1` has them.

How much of a budget is used is not in that API: only an estimate can be put beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_NAME: Final = 60
CURRENCY: Final = "USD"
"""The currency of estimates; a budget in another one is not compared with them."""


class SpendBasis(StrEnum):
    """What a threshold is measured against, in Google's own words."""

    CURRENT = "CURRENT_SPEND"
    FORECASTED = "FORECASTED_SPEND"


class BudgetScope(StrEnum):
    """Whose spending a budget counts."""

    PROJECT = "project"
    """This project alone."""
    PROJECTS = "projects"
    """This project and others."""
    ACCOUNT = "account"
    """The whole billing account, this project included."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of the amount (0.5 is 50 %) at which the account's owners are told."""

    share: float
    basis: str = SpendBasis.CURRENT


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget.

    Attributes:
        name: Full resource name.
        amount: In `currency`, or None where it is whatever was spent in the last period.
        period: `MONTH`, `QUARTER`, `YEAR`, or the two days of a custom one.
        scope: Whose spending it counts, or None where that was not asked.
        only_services: Whether it counts some services only, of which TPUs may be none.
        etag: Changes with each change, so that two editors do not overwrite each other.
    """

    name: str
    display_name: str
    amount: float | None
    currency: str
    rules: tuple[Threshold, ...] = ()
    period: str = "MONTH"
    scope: BudgetScope | None = None
    only_services: bool = False
    etag: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def budget_id(self) -> str:
        """The last segment of the resource name."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The shares of all thresholds, as the API orders them."""
        return tuple(rule.share for rule in self.rules)


@dataclass(frozen=True, slots=True)
class BudgetDraft:
    """A budget that is to be made, or what is to be changed of one; None leaves it as it is.

    Attributes:
        amount: In US dollars for a new one, in its own currency for one that is there.
    """

    display_name: str | None = None
    amount: float | None = None
    rules: tuple[Threshold, ...] | None = None


@dataclass(frozen=True, slots=True)
class CoveringBudgets:
    """The budgets that count a project's spending.

    Attributes:
        account: The billing account that pays for the project, `billingAccounts/ID`.
    """

    account: str
    budgets: tuple[Budget, ...]


class BudgetPort(Protocol):
    """What an operator's screen may ask about budgets. Watch mode has none."""

    async def covering(self) -> CoveringBudgets:
        """Read the budgets that cover the project.

        Raises:
            TpudashError: No account pays for it, or the account may not be seen.
        """
        ...

    async def create(self, account: str, draft: BudgetDraft) -> Budget:
        """Make a monthly budget of this project's spending."""
        ...

    async def update(self, budget: Budget, draft: BudgetDraft) -> Budget:
        """Change a budget, unless somebody else changed it since it was read."""
        ...
