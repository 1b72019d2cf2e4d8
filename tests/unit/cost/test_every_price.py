"""Every type, region and scheduling of the bundled table, by value."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from tpudash.cost.estimate import hourly_rate
from tpudash.cost.prices import PriceBook
from tpudash.cost.what_if import what_if
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling

BOOK = PriceBook.bundled()
ROWS: list[dict[str, Any]] = json.loads(
    files("tpudash.cost").joinpath("data/prices.json").read_text("utf-8")
)["current"]
TYPES = load_catalog().types


def row_for(name: str, region: str) -> dict[str, Any] | None:
    """Find the table's row by hand: v2 and v3 are priced apart for devices and slices."""
    kind = TYPES[name]
    for row in ROWS:
        if row["generation"] != kind.generation.name or row["region"] != region:
            continue
        variant = row["variant"].split(" ")[0]
        if variant == "any" or (variant == "pod") == (kind.hosts > 1):
            return row
    return None


CASES = [
    (name, zone, scheduling)
    for name, kind in TYPES.items()
    for zone in kind.zones
    for scheduling in Scheduling
]


def test_there_are_cases() -> None:
    assert len(TYPES) > 50
    assert len(CASES) > 1_000


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_region_and_scheduling_of_a_type(name: str) -> None:
    kind = TYPES[name]
    for zone in kind.zones:
        row = row_for(name, zone.rsplit("-", 1)[0])
        on_demand = row["on_demand"] if row else None
        spot = row["spot"] if row else None
        expected = {
            Scheduling.ON_DEMAND: on_demand,
            Scheduling.SPOT: spot,
            Scheduling.PREEMPTIBLE: spot,
            Scheduling.RESERVED: None,
        }
        for scheduling, per_chip in expected.items():
            rate = hourly_rate(name, zone, scheduling, BOOK)
            if per_chip is None:
                assert rate is None, (name, zone, scheduling)
            else:
                assert rate == pytest.approx(per_chip * kind.chips), (name, zone, scheduling)


@pytest.mark.parametrize(
    ("name", "zone", "scheduling", "per_hour"),
    [
        ("v2-8", "us-central1-b", Scheduling.ON_DEMAND, 4.50),
        ("v2-8", "us-central1-b", Scheduling.SPOT, 1.35),
        ("v2-32", "us-central1-a", Scheduling.ON_DEMAND, 24.0),
        ("v3-8", "us-central1-a", Scheduling.ON_DEMAND, 8.0),
        ("v4-8", "us-central2-b", Scheduling.ON_DEMAND, 12.88),
        ("v5litepod-8", "us-central1-a", Scheduling.ON_DEMAND, 9.60),
        ("v5p-8", "us-central1-a", Scheduling.ON_DEMAND, 16.80),
        ("v6e-8", "us-east5-b", Scheduling.ON_DEMAND, 21.60),
        ("v9-8", "us-central1-a", Scheduling.SPOT, None),
        ("v2-8", "mars-north1-a", Scheduling.SPOT, None),
    ],
)
def test_prices_that_people_know(
    name: str, zone: str, scheduling: Scheduling, per_hour: float | None
) -> None:
    rate = hourly_rate(name, zone, scheduling, BOOK)
    assert rate == (None if per_hour is None else pytest.approx(per_hour))


def test_what_if_puts_types_side_by_side() -> None:
    rows = what_if("us-central1-b", Scheduling.SPOT, BOOK, most_chips=8)
    by_type = {row.accelerator_type: row for row in rows}
    v2 = by_type["v2-8"]
    assert (v2.chips, v2.hosts, v2.hbm_gib, v2.peak_tflops) == (4, 1, 64.0, 184.0)
    assert v2.per_hour_usd == pytest.approx(1.35)
    assert v2.per_peak_tflop_usd == pytest.approx(1.35 / 184)
    assert v2.price is not None
    assert v2.price.is_example
    rates = [row.per_hour_usd for row in rows if row.per_hour_usd is not None]
    assert rates == sorted(rates)
    unknown = [row.per_hour_usd is None for row in rows]
    assert unknown == sorted(unknown)


def test_what_if_keeps_to_what_the_zone_offers() -> None:
    rows = what_if("us-central1-b", Scheduling.SPOT, BOOK, offered=["v3-8", "v99-8"])
    assert [row.accelerator_type for row in rows] == ["v3-8"]
