"""Prices that were read, kept with their day; and jumps between two readings."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.factories import NOW
from tpudash.cost.price_cache import JUMP_SHOWN, PriceCache, has_jumped
from tpudash.cost.prices import PriceBook
from tpudash.domain.node import Scheduling
from tpudash.domain.price import Price

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.cost.price_cache import Row


def row(usd: float, region: str = "us-central1") -> Row:
    price = Price(
        usd, "Cloud Billing catalogue, SKU 1", date(2026, 11, 30), region, Scheduling.SPOT
    )
    return "v6e", "any", price


@pytest.fixture
def cache(tmp_path: Path) -> PriceCache:
    return PriceCache(tmp_path / "cache" / "prices.json")


def test_a_reading_is_kept_with_its_time(cache: PriceCache) -> None:
    (taken,) = cache.take([row(0.5)], NOW)
    assert cache.load() == (taken,)
    price = taken[2]
    assert (price.per_chip_hour_usd, price.read, price.as_of) == (0.5, NOW, date(2026, 11, 30))
    assert price.change is None
    found = PriceBook.bundled().with_catalog(cache.load())
    used = found.price_for("v6e-8", "us-central1-b", Scheduling.PREEMPTIBLE)
    assert used is not None
    assert used.read == NOW
    assert not used.is_example


@pytest.mark.parametrize(
    ("before", "now", "jumped"),
    [(1.0, 1.2, False), (1.0, 1.21, True), (1.0, 0.8, False), (1.0, 0.79, True), (None, 9, False)],
)
def test_more_than_a_fifth_is_a_jump(before: float | None, now: float, jumped: bool) -> None:
    assert has_jumped(before, now) is jumped


def test_a_jump_is_flagged_for_a_week(cache: PriceCache) -> None:
    cache.take([row(0.5), row(0.7, "us-east1")], NOW)
    later = NOW + timedelta(hours=1)
    jumped, steady = cache.take([row(1.89), row(0.75, "us-east1")], later)
    assert jumped[2].change == pytest.approx(2.78)
    assert steady[2].change is None
    (again,) = cache.take([row(1.89)], later + timedelta(days=1))
    assert again[2].before_usd == 0.5
    (settled,) = cache.take([row(1.89)], later + JUMP_SHOWN + timedelta(days=1))
    assert settled[2].before_usd is None


def test_an_empty_reading_forgets_nothing(cache: PriceCache) -> None:
    cache.take([row(0.5)], NOW)
    (kept,) = cache.take([], NOW + timedelta(hours=1))
    assert kept[2].read == NOW


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        json.dumps({"schema": 2, "read": "2026-12-01T00:00:00Z", "prices": []}),
        json.dumps({"schema": 1, "read": "2026-12-01T00:00:00", "prices": []}),
        json.dumps(
            {
                "schema": 1,
                "read": "2026-12-01T00:00:00Z",
                "prices": [
                    {
                        "generation": "v2",
                        "variant": "any",
                        "region": "r",
                        "scheduling": "spot",
                        "per_chip_hour_usd": -1,
                        "source": "s",
                    }
                ],
            }
        ),
    ],
)
def test_a_damaged_file_is_no_reason_to_fail(tmp_path: Path, content: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)
    assert PriceCache(path).load() == ()


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = PriceCache(tmp_path / "file" / "prices.json")
    (taken,) = cache.take([row(0.5)], NOW)
    assert taken[2].per_chip_hour_usd == 0.5
