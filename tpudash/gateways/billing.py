"""Cloud Billing: the catalogue of prices, the project's account, its budgets.

Source: google/cloud/billing/v1, google/cloud/billing/budgets/v1.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.budget import CURRENCY
from tpudash.errors import NotAllowedError
from tpudash.gateways.clients import ClientKind
from tpudash.gateways.convert_budget import budget_of, covers_account, request_fields
from tpudash.gateways.convert_price import CHIP_SERVICE, DEVICE_SERVICE, prices_of
from tpudash.gateways.paging import all_pages, raw, raw_page, readable
from tpudash.gateways.protocols import BillingInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from tpudash.domain.budget import Budget, BudgetDraft
    from tpudash.domain.price import Price
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.retry import Caller

logger = logging.getLogger(__name__)

READ_S: Final = 10.0
CATALOG_S: Final = 60.0
CATALOG_MOST_S: Final = 240.0
SKUS_A_PAGE: Final = 5_000
BUDGETS_A_PAGE: Final = 100


class GoogleBilling:
    """`BillingGateway` over Google's clients."""

    def __init__(self, clients: Clients, caller: Caller, project: str) -> None:
        self._clients = clients
        self._caller = caller
        self._project = project

    async def list_tpu_prices(self) -> Sequence[tuple[str, str, Price]]:
        """Return (generation, variant, price) of each TPU SKU that could be read.

        The variant is `device`, `pod` or `any`.
        """
        found: list[tuple[str, str, Price]] = []
        for service in (DEVICE_SERVICE, CHIP_SERVICE):
            found.extend(await self._prices_in(service))
        return found

    async def billing_info(self) -> BillingInfo:
        """Return the project's billing account."""
        client = await self._clients.get(ClientKind.BILLING)

        def call(timeout_s: float) -> Awaitable[Any]:
            return readable(
                client.get_project_billing_info(
                    request={"name": f"projects/{self._project}"}, timeout=timeout_s, retry=None
                )
            )

        found = raw(await self._caller.read("read the billing account", call, timeout_s=READ_S))
        return BillingInfo(found.billing_account_name, found.billing_enabled)

    async def list_budgets(self, account: str) -> tuple[Budget, ...]:
        """List the budgets of an account that the caller may see."""
        return tuple([budget_of(message) async for message in self._budgets(account, "")])

    async def list_covering_budgets(self, account: str) -> tuple[Budget, ...]:
        """List the budgets that count this project's spending: its own, and the account's.

        Whoever may see the project's budgets alone is shown those.
        """
        scope = f"projects/{self._project}"
        found = {
            message.name: budget_of(message, is_scoped=True)
            async for message in self._budgets(account, scope)
        }
        try:
            async for message in self._budgets(account, ""):
                if message.name not in found and covers_account(message):
                    found[message.name] = budget_of(message)
        except NotAllowedError:
            logger.info("only the budgets of %s itself may be seen", scope)
        return tuple(found[name] for name in sorted(found))

    async def create_budget(self, account: str, draft: BudgetDraft) -> Budget:
        """Make a budget of this project's spending, by the month.

        Raises:
            OutcomeUnknownError: No answer came.
        """
        client = await self._clients.get(ClientKind.BUDGETS)
        request = {"parent": account, "budget": request_fields(draft, self._project)}

        def call(timeout_s: float) -> Awaitable[Any]:
            return readable(client.create_budget(request=request, timeout=timeout_s, retry=None))

        made = await self._caller.change("create the budget", call, timeout_s=READ_S)
        return budget_of(raw(made), is_scoped=True)

    async def update_budget(self, budget: Budget, draft: BudgetDraft) -> Budget:
        """Change a budget, unless somebody else changed it since it was read.

        Raises:
            OutcomeUnknownError: No answer came.
        """
        client = await self._clients.get(ClientKind.BUDGETS)
        fields = request_fields(draft, None, budget.currency or CURRENCY)
        request = {
            "budget": {"name": budget.name, "etag": budget.etag, **fields},
            "update_mask": {"paths": sorted(fields)},
        }

        def call(timeout_s: float) -> Awaitable[Any]:
            return readable(client.update_budget(request=request, timeout=timeout_s, retry=None))

        made = await self._caller.change("change the budget", call, timeout_s=READ_S)
        return replace(budget_of(raw(made)), scope=budget.scope)

    async def _budgets(self, account: str, scope: str) -> AsyncIterator[Any]:
        client = await self._clients.get(ClientKind.BUDGETS)

        async def page(token: str, timeout_s: float) -> Any:
            request = {
                "parent": account,
                "scope": scope,
                "page_size": BUDGETS_A_PAGE,
                "page_token": token,
            }
            return await raw_page(
                await client.list_budgets(request=request, timeout=timeout_s, retry=None)
            )

        async for answer in all_pages(self._caller, "list budgets", page, timeout_s=READ_S):
            for message in answer.budgets:
                yield message

    async def _prices_in(self, service: str) -> list[tuple[str, str, Price]]:
        client = await self._clients.get(ClientKind.CATALOG)

        async def page(token: str, timeout_s: float) -> Any:
            request = {
                "parent": service,
                "currency_code": "USD",
                "page_size": SKUS_A_PAGE,
                "page_token": token,
            }
            return await raw_page(
                await client.list_skus(request=request, timeout=timeout_s, retry=None)
            )

        found: list[tuple[str, str, Price]] = []
        async for answer in all_pages(
            self._caller, "list prices", page, timeout_s=CATALOG_S, most_s=CATALOG_MOST_S
        ):
            # Compute Engine has tens of thousands of SKUs: too many to look through on the loop.
            found.extend(await asyncio.to_thread(_prices_on, answer, service))
        return found


def _prices_on(page: Any, service: str) -> list[tuple[str, str, Price]]:
    return [row for sku in page.skus for row in prices_of(sku, service)]
