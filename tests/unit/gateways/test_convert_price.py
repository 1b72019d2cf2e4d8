"""SKUs of the price catalogue: what is not in dollars for an hour of a chip is no price."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.billing_v1 import Sku

from tpudash.domain.node import Scheduling
from tpudash.gateways.convert_price import CHIP_SERVICE, DEVICE_SERVICE, prices_of


def sku(*rates: tuple[float, int, str], unit: str = "h", **more: Any) -> Any:
    """Return a raw SKU; each rate is (from how many hours on, dollars, currency)."""
    fields: dict[str, Any] = {
        "sku_id": "AAAA",
        "description": "TpuV6e running in Iowa (us-central1)",
        "category": {"resource_group": "TPU", "usage_type": "OnDemand"},
        "service_regions": ["us-central1"],
        **more,
    }
    tiers = [
        {
            "start_usage_amount": start,
            "unit_price": {"currency_code": currency, "units": 0, "nanos": int(nanos)},
        }
        for start, nanos, currency in rates
    ]
    info = {"pricing_expression": {"usage_unit": unit, "tiered_rates": tiers}}
    return Sku.pb(Sku(pricing_info=[info], **fields))


def dollars(found: Any) -> list[float]:
    return [price.per_chip_hour_usd for _, _, price in found]


def test_a_price_in_dollars_for_an_hour() -> None:
    ((generation, variant, price),) = prices_of(sku((0, 500_000_000, "USD")), CHIP_SERVICE)
    assert (generation, variant, price.region) == ("v6e", "any", "us-central1")
    assert (price.per_chip_hour_usd, price.scheduling) == (0.5, Scheduling.ON_DEMAND)
    assert "AAAA" in price.source


@pytest.mark.parametrize("currency", ["EUR", "JPY", "usd"])
def test_another_currency_is_no_price(currency: str) -> None:
    assert dollars(prices_of(sku((0, 500_000_000, currency)), CHIP_SERVICE)) == []


@pytest.mark.parametrize("unit", ["s", "mo", "GiBy.h", "", "d"])
def test_another_unit_is_no_price(unit: str) -> None:
    assert dollars(prices_of(sku((0, 500_000_000, "USD"), unit=unit), CHIP_SERVICE)) == []


def test_of_tiers_the_first_that_costs_anything_counts() -> None:
    tiers = ((0, 0, "USD"), (10, 500_000_000, "USD"), (1000, 400_000_000, "USD"))
    assert dollars(prices_of(sku(*tiers), CHIP_SERVICE)) == [0.5]
    assert dollars(prices_of(sku((0, 0, "USD")), CHIP_SERVICE)) == []
    assert dollars(prices_of(sku(), CHIP_SERVICE)) == []


def test_the_older_service_prices_devices_of_four_chips() -> None:
    found = sku(
        (0, 800_000_000, "USD"), description="Tpu-v2 accelerator running in Iowa (us-central1)"
    )
    assert dollars(prices_of(found, DEVICE_SERVICE)) == [0.2]
