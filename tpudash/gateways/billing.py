"""Cloud Billing: the catalogue of prices, the project's account, its budgets.

Source: google/cloud/billing/v1, google/cloud/billing/budgets/v1.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.clients import ClientKind
from tpudash.gateways.convert import LazyObject
from tpudash.gateways.convert_price import CHIP_SERVICE, DEVICE_SERVICE, prices_of
from tpudash.gateways.paging import all_pages, raw, raw_page
from tpudash.gateways.protocols import BillingInfo, Budget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tpudash.domain.price import Price
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.retry import Caller

READ_S: Final = 10.0
CATALOG_S: Final = 60.0
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
            answer: Awaitable[Any] = client.get_project_billing_info(
                request={"name": f"projects/{self._project}"}, timeout=timeout_s, retry=None
            )
            return answer

        found = raw(await self._caller.read("read the billing account", call, timeout_s=READ_S))
        return BillingInfo(found.billing_account_name, found.billing_enabled)

    async def list_budgets(self, account: str) -> tuple[Budget, ...]:
        """List the budgets of an account that the caller may see."""
        client = await self._clients.get(ClientKind.BUDGETS)

        async def page(token: str, timeout_s: float) -> Any:
            request = {"parent": account, "page_size": BUDGETS_A_PAGE, "page_token": token}
            return await raw_page(
                await client.list_budgets(request=request, timeout=timeout_s, retry=None)
            )

        pages = all_pages(self._caller, "list budgets", page, timeout_s=READ_S)
        return tuple([_budget_of(budget) async for answer in pages for budget in answer.budgets])

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
        async for answer in all_pages(self._caller, "list prices", page, timeout_s=CATALOG_S):
            # Compute Engine has tens of thousands of SKUs: too many to look through on the loop.
            found.extend(await asyncio.to_thread(_prices_on, answer, service))
        return found


def _prices_on(page: Any, service: str) -> list[tuple[str, str, Price]]:
    return [row for sku in page.skus for row in prices_of(sku, service)]


def _budget_of(message: Any) -> Budget:
    kind = message.amount.WhichOneof("budget_amount")
    money = message.amount.specified_amount
    return Budget(
        name=message.name,
        display_name=message.display_name,
        amount=money.units + money.nanos / 1e9 if kind == "specified_amount" else None,
        currency=money.currency_code,
        thresholds=tuple(rule.threshold_percent for rule in message.threshold_rules),
        raw=LazyObject(message),
    )
