"""Prices, billing accounts and budgets through Google's own clients."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.billing import budgets_v1

from tests.emulator_fixture import CALL, Cloud


async def prices(cloud: Cloud, service: str) -> dict[str, tuple[Any, Any]]:
    """Return usage type and price per hour by SKU description."""
    found = {}
    async for sku in await cloud.catalog.list_skus({"parent": service, "page_size": 10}, **CALL):
        assert sku.category.resource_group == "TPU"
        (pricing,) = sku.pricing_info
        assert pricing.pricing_expression.usage_unit == "h"
        (rate,) = pricing.pricing_expression.tiered_rates
        price = rate.unit_price.units + rate.unit_price.nanos / 1e9
        found[sku.description] = (sku.category.usage_type, price)
    return found


async def test_older_generations_are_priced_per_device(emulator: Cloud) -> None:
    found = await prices(emulator, "services/E000-3F24-B8AA")
    assert found["Tpu-v2 running in Americas (us-central1)"] == ("OnDemand", pytest.approx(4.5))
    assert found["Tpu-v2 Preemptible running in Americas (us-central1)"] == (
        "OnDemand",
        pytest.approx(1.35),
    )
    assert "Tpu-v2 Pod running in Americas (us-central1)" in found


async def test_newer_generations_are_priced_per_chip(emulator: Cloud) -> None:
    found = await prices(emulator, "services/6F81-5844-456A")
    assert found["TpuV6e running in Americas (us-central1)"] == ("OnDemand", pytest.approx(2.7))
    spot = found["TpuV6e attached to Spot Preemptible VMs running in Americas (us-central1)"]
    assert spot == ("Preemptible", pytest.approx(0.59266))


async def test_budgets_are_kept_per_account(emulator: Cloud) -> None:
    info = await emulator.billing.get_project_billing_info(name="projects/demo", **CALL)
    account = info.billing_account_name
    assert info.billing_enabled
    accounts = [item async for item in await emulator.billing.list_billing_accounts(**CALL)]
    assert [item.name for item in accounts] == [account]

    wanted = budgets_v1.Budget(
        display_name="TPU",
        amount={"specified_amount": {"currency_code": "USD", "units": 100}},
        threshold_rules=[{"threshold_percent": 0.5}],
    )
    budget = await emulator.budgets.create_budget(
        request={"parent": account, "budget": wanted}, **CALL
    )
    budget.display_name = "TPU spend"
    request = {"budget": budget, "update_mask": {"paths": ["display_name"]}}
    changed = await emulator.budgets.update_budget(request=request, **CALL)
    assert changed.display_name == "TPU spend"
    assert changed.amount.specified_amount.units == 100
    with pytest.raises(exceptions.Aborted):
        await emulator.budgets.update_budget(request=request, **CALL)
    listed = await emulator.budgets.list_budgets(request={"parent": account}, **CALL)
    assert [item.name async for item in listed] == [budget.name]
    await emulator.budgets.delete_budget(request={"name": budget.name}, **CALL)
    with pytest.raises(exceptions.NotFound):
        await emulator.budgets.get_budget(request={"name": budget.name}, **CALL)


async def test_a_budget_needs_an_amount(emulator: Cloud) -> None:
    info = await emulator.billing.get_project_billing_info(name="projects/demo", **CALL)
    request = {"parent": info.billing_account_name, "budget": budgets_v1.Budget()}
    with pytest.raises(exceptions.InvalidArgument):
        await emulator.budgets.create_budget(request=request, **CALL)
