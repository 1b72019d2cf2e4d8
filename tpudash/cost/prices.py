"""Dated list prices for each chip and hour: a bundled table, with live prices laid over it.

Prices differ by generation, region and scheduling, and for v2 and v3 also by whether the node is
one device or a slice of a pod. A price that nobody has seen is None and never 0.
Source: https://cloud.google.com/tpu/pricing, through the copies that the table's `_meta` names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.domain.price import Price
from tpudash.domain.resource_name import region_of
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tpudash.domain.accelerator import AcceleratorType

GENERATIONS_PRICED_BY_VARIANT: Final = frozenset({"v2", "v3"})
CURRENCY: Final = "USD"
UNIT: Final = "per chip-hour"


class Variant(StrEnum):
    """What a price is for: one device, a slice of a pod, or either."""

    DEVICE = "device"
    POD = "pod"
    ANY = "any"

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Return the variant that a text such as `pod (v2-32 and up)` begins with."""
        first = text.strip().lower().partition(" ")[0]
        return cls(first) if first in tuple(cls) else cls.ANY

    @classmethod
    def of(cls, kind: AcceleratorType) -> Variant:
        """Return the variant that an accelerator type is priced as."""
        if kind.generation.name not in GENERATIONS_PRICED_BY_VARIANT:
            return cls.ANY
        return cls.POD if kind.is_slice else cls.DEVICE


class PriceKey(NamedTuple):
    """What a price hangs on. Spot and preemptible are one product in the catalogue."""

    generation: str
    variant: Variant
    region: str
    scheduling: Scheduling


@dataclass(frozen=True)
class PriceBook:
    """All prices that are known, each with its source and its day."""

    prices: Mapping[PriceKey, Price] = field(default_factory=dict)

    @classmethod
    def bundled(cls) -> PriceBook:
        """Return the prices that ship with tpudash; its spot prices are examples.

        Raises:
            ConfigurationError: The table is not in US dollars per chip-hour.
        """
        return _read_bundled()

    def price_for(self, accelerator_type: str, zone: str, scheduling: Scheduling) -> Price | None:
        """Return the price of one chip for one hour, or None where it is not known.

        Reserved capacity has no list price: it is paid for by the terms of its commitment, so
        its price is not known here.
        """
        kind = load_catalog().find(accelerator_type)
        if kind is None or scheduling is Scheduling.RESERVED:
            return None
        key = PriceKey(
            kind.generation.name, Variant.of(kind), region_of(zone), _as_priced(scheduling)
        )
        found = self.prices.get(key) or self.prices.get(key._replace(variant=Variant.ANY))
        return replace(found, scheduling=scheduling) if found else None

    def with_catalog(self, prices: Iterable[tuple[str, str, Price]]) -> PriceBook:
        """Return this book with live prices laid over it.

        Args:
            prices: (generation, variant, price) of each SKU, in US dollars per chip-hour, as
                `BillingGateway.list_tpu_prices` returns them.
        """
        return PriceBook({**self.prices, **dict(_keyed(prices))})


def _as_priced(scheduling: Scheduling) -> Scheduling:
    return Scheduling.SPOT if scheduling is Scheduling.PREEMPTIBLE else scheduling


def _keyed(prices: Iterable[tuple[str, str, Price]]) -> Iterator[tuple[PriceKey, Price]]:
    for generation, variant, price in prices:
        if price.scheduling is not Scheduling.RESERVED and price.per_chip_hour_usd > 0:
            yield (
                PriceKey(
                    generation, Variant.parse(variant), price.region, _as_priced(price.scheduling)
                ),
                price,
            )


@cache
def _read_bundled() -> PriceBook:
    text = files("tpudash.cost").joinpath("data/prices.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    about = data["_meta"]
    if about["currency"] != CURRENCY or about["unit"] != UNIT:
        raise ConfigurationError(
            "The bundled price table is not in US dollars per chip-hour",
            detail=f"it says {about['currency']} {about['unit']}",
            hint="Install tpudash again.",
        )
    rows = (priced for row in data["current"] for priced in _prices_of(row))
    return PriceBook(dict(_keyed(rows)))


def _prices_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Price]]:
    """Return the prices of one row of the table; a null in it is a price that nobody has seen."""
    columns = (("on_demand", Scheduling.ON_DEMAND), ("spot", Scheduling.SPOT))
    for column, scheduling in columns:
        if row[column] is None:
            continue
        price = Price(
            per_chip_hour_usd=float(row[column]),
            source=f"bundled table, from {row['source']}",
            as_of=date.fromisoformat(row["date"]) if row["date"] else None,
            region=row["region"],
            scheduling=scheduling,
            is_example=scheduling is Scheduling.SPOT,
        )
        yield row["generation"], row["variant"], price
