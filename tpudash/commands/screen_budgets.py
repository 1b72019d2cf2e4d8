"""Budgets for an operator's console and for `tpudash budget`: the account, then its budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.domain.budget import CoveringBudgets
from tpudash.errors import NotFoundError

if TYPE_CHECKING:
    from tpudash.commands.screen import ScreenParts
    from tpudash.domain.budget import Budget, BudgetDraft
    from tpudash.gateways.protocols import Cloud


async def billing_account(cloud: Cloud) -> str:
    """Return the billing account that pays for the project.

    Raises:
        NotFoundError: There is none.
        TpudashError: It may not be seen.
    """
    info = await cloud.billing.billing_info()
    if info.account:
        return info.account
    raise NotFoundError(
        f"no billing account pays for {cloud.project}",
        hint=f"link one: gcloud billing projects link {cloud.project} --billing-account=ID",
    )


class ScreenBudgets:
    """`BudgetPort` of a console; connects when it is first asked."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts

    async def covering(self) -> CoveringBudgets:
        """Read the budgets that cover the project.

        Raises:
            TpudashError: No account pays for it, or the account may not be seen.
        """
        cloud = await self._parts.link.cloud()
        account = await billing_account(cloud)
        return CoveringBudgets(account, await cloud.billing.list_covering_budgets(account))

    async def create(self, account: str, draft: BudgetDraft) -> Budget:
        """Make a monthly budget of this project's spending."""
        cloud = await self._parts.link.cloud()
        return await cloud.billing.create_budget(account, draft)

    async def update(self, budget: Budget, draft: BudgetDraft) -> Budget:
        """Change a budget, unless somebody else changed it since it was read."""
        cloud = await self._parts.link.cloud()
        return await cloud.billing.update_budget(budget, draft)
