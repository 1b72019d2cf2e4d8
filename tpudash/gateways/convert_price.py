"""TPU prices: from the SKUs of the billing catalogue to dollars for each chip and hour.

Older generations (v2, v3, v4) are priced for a device of four chips, newer ones for a chip.
Source: google/cloud/billing/v1/cloud_catalog.proto.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.node import Scheduling
from tpudash.domain.price import Price
from tpudash.gateways.convert import to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE_SERVICE: Final = "services/E000-3F24-B8AA"
CHIP_SERVICE: Final = "services/6F81-5844-456A"
CHIPS_OF_A_DEVICE: Final = 4
SOURCE: Final = "Cloud Billing catalogue"

_GENERATION: Final = re.compile(r"\bTpu[- ]?(v?\d+[a-z]*)", re.IGNORECASE)
_GENERATIONS: Final = {
    "v2": "v2",
    "v3": "v3",
    "v4": "v4",
    "v5e": "v5e",
    "v5lite": "v5e",
    "v5litepod": "v5e",
    "v5p": "v5p",
    "v6e": "v6e",
    "7x": "v7x",
    "v7x": "v7x",
}
_OTHER_TERMS: Final = re.compile(
    r"reserv|commit|calendar|\bdws\b|dynamic workload|defined duration|subscription|fixed price"
    r"|capacity optimized|flex[- ]start",
    re.IGNORECASE,
)
_SPOT: Final = re.compile(r"preemptible|\bspot\b", re.IGNORECASE)
_POD: Final = re.compile(r"\bpod\b", re.IGNORECASE)
_RUNNING_IN: Final = re.compile(r"\(([a-z]+(?:-[a-z]+)+\d+)\)")


def prices_of(sku: Any, service: str) -> Iterator[tuple[str, str, Price]]:
    """Yield (generation, variant, price) for each region of one raw Sku; nothing for other SKUs.

    The service that the SKU was listed under says what its unit is.
    """
    generation = _generation_of(sku)
    if generation is None or _OTHER_TERMS.search(sku.description):
        return
    usage = sku.category.usage_type
    if usage not in {"OnDemand", "Preemptible"}:
        return
    found = _hourly(sku)
    if found is None:
        return
    per_hour, as_of = found
    is_spot = usage == "Preemptible" or bool(_SPOT.search(sku.description))
    chips = CHIPS_OF_A_DEVICE if service == DEVICE_SERVICE else 1
    for region in _regions_of(sku):
        price = Price(
            per_chip_hour_usd=round(per_hour / chips, 9),
            source=f"{SOURCE}, SKU {sku.sku_id}" if sku.sku_id else SOURCE,
            as_of=as_of.date() if as_of else None,
            region=region,
            scheduling=Scheduling.SPOT if is_spot else Scheduling.ON_DEMAND,
        )
        yield generation, _variant_of(generation, sku.description), price


def _generation_of(sku: Any) -> str | None:
    if sku.category.resource_group != "TPU":
        return None
    match = _GENERATION.search(sku.description)
    return _GENERATIONS.get(match.group(1).lower()) if match else None


def _variant_of(generation: str, description: str) -> str:
    if generation not in {"v2", "v3"}:
        return "any"
    return "pod" if _POD.search(description) else "device"


def _hourly(sku: Any) -> tuple[float, Any] | None:
    """Return dollars an hour and since when; None where the SKU is not priced by the hour."""
    if not sku.pricing_info:
        return None
    info = sku.pricing_info[-1]
    expression = info.pricing_expression
    if expression.usage_unit != "h":
        return None
    for rate in expression.tiered_rates:
        amount = rate.unit_price
        per_hour = float(amount.units) + amount.nanos / 1e9
        if per_hour > 0 and amount.currency_code in {"", "USD"}:
            return per_hour, to_datetime(info.effective_time)
    return None


def _regions_of(sku: Any) -> tuple[str, ...]:
    if sku.service_regions:
        return tuple(sku.service_regions)
    match = _RUNNING_IN.search(sku.description)
    return (match.group(1),) if match else ()
