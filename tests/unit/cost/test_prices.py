"""Prices by value, against the bundled table itself."""

from __future__ import annotations

import json
from datetime import date
from importlib.resources import files
from typing import Any

import pytest

from tpudash.cost.estimate import hourly_rate
from tpudash.cost.prices import PriceBook, Variant
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.domain.price import Price

BOOK = PriceBook.bundled()
ON_DEMAND, SPOT = Scheduling.ON_DEMAND, Scheduling.SPOT
TABLE: dict[str, Any] = json.loads(
    files("tpudash.cost").joinpath("data/prices.json").read_text("utf-8")
)
REGIONS = sorted({row["region"] for row in TABLE["current"]} | {"nowhere1", "me-west1"})


@pytest.mark.parametrize(
    ("kind", "zone", "scheduling", "per_hour"),
    [
        ("v2-8", "us-central1-b", SPOT, 1.35),
        ("v2-8", "us-central1-b", Scheduling.PREEMPTIBLE, 1.35),
        ("v2-8", "us-central1-b", ON_DEMAND, 4.50),
        ("v2-8", "europe-west4-a", ON_DEMAND, 4.95),
        ("v2-8", "asia-east1-c", SPOT, 1.566),
        ("v2-32", "us-central1-a", ON_DEMAND, 24.00),
        ("v2-32", "us-central1-a", SPOT, 6.12),
        ("v3-8", "us-central1-a", ON_DEMAND, 8.00),
        ("v3-8", "us-central1-a", SPOT, 2.04),
        ("v3-32", "europe-west4-a", ON_DEMAND, 32.00),
        ("v4-8", "us-central2-b", ON_DEMAND, 12.88),
        ("v5p-8", "us-central1-a", ON_DEMAND, 16.80),
        ("v5p-8", "us-east5-a", ON_DEMAND, 16.80),
        ("v5litepod-16", "us-west4-a", ON_DEMAND, 19.20),
        ("v6e-1", "us-east1-d", SPOT, 0.59266),
        ("v6e-256", "us-east5-b", ON_DEMAND, 691.20),
    ],
)
def test_rate_is_chips_times_the_price_of_a_chip(
    kind: str, zone: str, scheduling: Scheduling, per_hour: float
) -> None:
    assert hourly_rate(kind, zone, scheduling, BOOK) == pytest.approx(per_hour)


@pytest.mark.parametrize(
    ("kind", "zone", "scheduling"),
    [
        ("v3-8", "us-east1-d", SPOT),
        ("v2-32", "asia-east1-c", ON_DEMAND),
        ("v3-32", "us-central1-a", ON_DEMAND),
        ("v6e-8", "asia-east1-a", ON_DEMAND),
        ("v2-8", "mars-north1-a", ON_DEMAND),
        ("v9-8", "us-central1-b", ON_DEMAND),
        ("", "us-central1-b", ON_DEMAND),
        ("v2-8", "us-central1-b", Scheduling.RESERVED),
    ],
)
def test_what_nobody_has_seen_is_unknown_and_not_free(
    kind: str, zone: str, scheduling: Scheduling
) -> None:
    assert BOOK.price_for(kind, zone, scheduling) is None
    assert hourly_rate(kind, zone, scheduling, BOOK) is None


def _in_table(kind: str, region: str, scheduling: Scheduling) -> float | None:
    """Read the table in another way than the code does."""
    accelerator = load_catalog().types[kind]
    column = {ON_DEMAND: "on_demand", SPOT: "spot", Scheduling.PREEMPTIBLE: "spot"}.get(scheduling)
    if column is None:
        return None
    wanted = "pod" if accelerator.hosts > 1 else "device"
    for row in TABLE["current"]:
        if row["generation"] == accelerator.generation.name and row["region"] == region:
            variant = row["variant"].split()[0]
            if variant in {"any", wanted}:
                return float(row[column]) if row[column] is not None else None
    return None


@pytest.mark.parametrize("scheduling", Scheduling)
@pytest.mark.parametrize("region", REGIONS)
def test_every_type_is_priced_as_in_the_table_or_unknown(
    region: str, scheduling: Scheduling
) -> None:
    for name, accelerator in load_catalog().types.items():
        expected = _in_table(name, region, scheduling)
        rate = hourly_rate(name, f"{region}-a", scheduling, BOOK)
        if expected is None:
            assert rate is None, name
        else:
            assert rate == pytest.approx(expected * accelerator.chips), name


def test_bundled_prices_say_where_and_when_they_were_read() -> None:
    price = BOOK.price_for("v2-8", "us-central1-b", ON_DEMAND)
    assert price is not None
    assert price.as_of == date(2026, 7, 9)
    assert "skypilot-catalog" in price.source
    assert not price.is_example


def test_bundled_spot_prices_are_examples() -> None:
    price = BOOK.price_for("v2-8", "us-central1-b", Scheduling.PREEMPTIBLE)
    assert price is not None
    assert price.is_example
    assert price.scheduling is Scheduling.PREEMPTIBLE


def _live(per_chip: float, scheduling: Scheduling = SPOT) -> Price:
    return Price(per_chip, "Cloud Billing Catalog", date(2026, 12, 1), "us-central1", scheduling)


def test_live_prices_lie_over_the_bundled_ones() -> None:
    book = BOOK.with_catalog([("v2", "device", _live(0.5)), ("v2", "pod", _live(0.6))])
    price = book.price_for("v2-8", "us-central1-b", SPOT)
    assert price is not None
    assert not price.is_example
    assert price.source == "Cloud Billing Catalog"
    assert hourly_rate("v2-8", "us-central1-b", Scheduling.PREEMPTIBLE, book) == pytest.approx(2.0)
    assert hourly_rate("v2-32", "us-central1-a", SPOT, book) == pytest.approx(9.6)
    assert hourly_rate("v2-8", "us-central1-b", ON_DEMAND, book) == pytest.approx(4.5)
    assert hourly_rate("v2-8", "us-central1-b", SPOT, BOOK) == pytest.approx(1.35)


def test_a_live_price_of_nothing_is_not_a_price() -> None:
    book = BOOK.with_catalog([("v2", "device", _live(0.0))])
    assert hourly_rate("v2-8", "us-central1-b", SPOT, book) == pytest.approx(1.35)


def test_a_live_price_for_any_variant_serves_both() -> None:
    book = PriceBook().with_catalog([("v3", "", _live(1.0, ON_DEMAND))])
    assert hourly_rate("v3-8", "us-central1-a", ON_DEMAND, book) == pytest.approx(4.0)
    assert hourly_rate("v3-32", "us-central1-a", ON_DEMAND, book) == pytest.approx(16.0)


@pytest.mark.parametrize(
    ("text", "variant"),
    [
        ("device (v2-8)", Variant.DEVICE),
        ("pod (v2-32 and up)", Variant.POD),
        ("Pod", Variant.POD),
        ("any", Variant.ANY),
        ("something else", Variant.ANY),
        ("", Variant.ANY),
    ],
)
def test_variant_is_the_first_word(text: str, variant: Variant) -> None:
    assert Variant.parse(text) is variant
