"""`google.cloud.billing.v1.CloudCatalog`: SKUs made from the bundled price table.

Shapes after public tools that read the live catalogue: the older generations are priced per
device of four chips in the service "Cloud TPU", the newer ones per chip in "Compute Engine".
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

from google.cloud.billing_v1.types import cloud_catalog

from tpudash.emulator.errors import not_found
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.paging import take_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tpudash.emulator.world.world import World

_LEGACY = ("services/E000-3F24-B8AA", "Cloud TPU")
_COMPUTE = ("services/6F81-5844-456A", "Compute Engine")
_LEGACY_GENERATIONS = {"v2": "Tpu-v2", "v3": "Tpu-v3", "v4": "Tpu-v4"}
_MODERN_GENERATIONS = {"v5e": "TpuV5e", "v5p": "TpuV5p", "v6e": "TpuV6e", "v7x": "TPU7x"}
_CHIPS_PER_DEVICE = 4
_NANOS = 1_000_000_000
_PLACES = {
    "asia": "Asia",
    "europe": "Europe",
    "us": "Americas",
    "northamerica": "Americas",
    "southamerica": "Americas",
}


class CatalogService:
    """Answers for the price catalogue."""

    def __init__(self, world: World) -> None:  # noqa: ARG002  (all services are made alike)
        text = resources.files("tpudash.cost").joinpath("data/prices.json").read_text("utf-8")
        self._skus: dict[str, list[Any]] = {_LEGACY[0]: [], _COMPUTE[0]: []}
        for row in json.loads(text)["current"]:
            for sku in _skus_of(row):
                self._skus[sku.name.partition("/skus/")[0]].append(sku)
        for skus in self._skus.values():
            skus.sort(key=lambda sku: str(sku.name))

    def table(self) -> Service:
        """Return the service with all its methods."""
        listing = cloud_catalog.ListServicesResponse
        return Service(
            "google.cloud.billing.v1.CloudCatalog",
            (
                Method(
                    "ListServices",
                    raw(cloud_catalog.ListServicesRequest),
                    raw(listing),
                    self.list_services,
                ),
                Method(
                    "ListSkus",
                    raw(cloud_catalog.ListSkusRequest),
                    raw(cloud_catalog.ListSkusResponse),
                    self.list_skus,
                ),
            ),
        )

    async def list_services(self, request: Any, _: Call) -> Any:  # noqa: ARG002
        """List the two services that sell TPUs."""
        response = raw(cloud_catalog.ListServicesResponse)()
        for name, display_name in (_COMPUTE, _LEGACY):
            response.services.add(
                name=name,
                service_id=name.partition("/")[2],
                display_name=display_name,
                business_entity_name="businessEntities/GCP",
            )
        return response

    async def list_skus(self, request: Any, _: Call) -> Any:
        """List the SKUs of a service."""
        if request.parent not in self._skus:
            raise not_found(request.parent)
        page, token = take_page(
            self._skus[request.parent],
            request.page_size,
            request.page_token,
            default=5_000,
            maximum=5_000,
        )
        return raw(cloud_catalog.ListSkusResponse)(skus=page, next_page_token=token)


def _skus_of(row: dict[str, Any]) -> Iterator[Any]:
    """Yield the on-demand and the spot SKU of one row of the price table."""
    region = row["region"]
    place = _PLACES.get(region.partition("-")[0], region)
    effective = datetime.fromisoformat(row["date"] + "T00:00:00+00:00") if row.get("date") else None
    for column in ("on_demand", "spot"):
        price = row[column]
        if price is None:
            continue
        spot = column == "spot"
        if row["generation"] in _LEGACY_GENERATIONS:
            name = _LEGACY_GENERATIONS[row["generation"]]
            pod = " Pod" if row["variant"].startswith("pod") else ""
            # Legacy preemptible SKUs say so in the description alone; their type is OnDemand.
            kind = " Preemptible" if spot else ""
            description = f"{name}{pod}{kind} running in {place} ({region})"
            service, usage, price = _LEGACY[0], "OnDemand", price * _CHIPS_PER_DEVICE
        else:
            name = _MODERN_GENERATIONS[row["generation"]]
            attached = " attached to Spot Preemptible VMs" if spot else ""
            description = f"{name}{attached} running in {place} ({region})"
            service, usage = _COMPUTE[0], "Preemptible" if spot else "OnDemand"
        yield _sku(service, description, usage, region, price, effective)


def _sku(
    service: str,
    description: str,
    usage_type: str,
    region: str,
    price: float,
    effective: datetime | None,
) -> Any:
    digest = hashlib.sha256(f"{service}{description}{region}".encode()).hexdigest().upper()
    sku_id = f"{digest[:4]}-{digest[4:8]}-{digest[8:12]}"
    sku = raw(cloud_catalog.Sku)(
        name=f"{service}/skus/{sku_id}",
        sku_id=sku_id,
        description=description,
        service_regions=[region],
        service_provider_name="Google",
    )
    sku.category.service_display_name = dict((_LEGACY, _COMPUTE))[service]
    sku.category.resource_family = "Compute"
    sku.category.resource_group = "TPU"
    sku.category.usage_type = usage_type
    pricing = sku.pricing_info.add()
    if effective is not None:
        pricing.effective_time.FromDatetime(effective)
    pricing.pricing_expression.usage_unit = "h"
    pricing.pricing_expression.usage_unit_description = "hour"
    pricing.pricing_expression.display_quantity = 1
    rate = pricing.pricing_expression.tiered_rates.add()
    nanos = round(price * _NANOS)
    rate.unit_price.currency_code = "USD"
    rate.unit_price.units, rate.unit_price.nanos = divmod(nanos, _NANOS)
    return sku
