"""A month in which everything goes odd, against totals that were worked out by hand.

v6e-4 has 4 chips; on spot in us-central1 a chip costs $0.50 an hour until 10 November 00:00 UTC
and $0.80 from then on. Now is 20 November 12:00.

| Node    | READY                          | Hours         | Charged                          |
|---------|--------------------------------|---------------|----------------------------------|
| steady  | 5 Nov 00:00 to 15 Nov 00:00    | 120 and 120   | 120 x $2.00 + 120 x $3.20 = $624 |
| flash   | 12 Nov 03:00:20 to 03:00:50    | 30 s          | preempted in its first minute    |
| ahead   | 16 Nov 10:00 to 12:00          | 2             | $6.40; created 10:05 by a clock  |
|         |                                |               | that is ahead                    |
| late    | created 17 Nov, seen 19 Nov    | 84            | $268.80, at least                |
| mystery | v9-8, since 18 Nov             | 60            | nobody knows                     |
| euro    | in a region priced in euros    | 60            | nobody knows                     |

In all $899.20, at least. By the audit log `late` was READY from 17 Nov 00:10 to 12:10 and from
19 Nov 06:10 on: 12 h and 29 h 50 min, $133.87, exactly.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import list_nodes, make_node, node_name, report_source
from tpudash.cost.audit import with_audit
from tpudash.cost.estimate import node_costs, project_totals
from tpudash.cost.history import NodeHistory
from tpudash.cost.lives import lives_of
from tpudash.cost.price_cache import PriceCache
from tpudash.cost.prices import PriceBook
from tpudash.cost.report import cost_between, start_of_month
from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.node import Node, Scheduling
from tpudash.domain.price import Price
from tpudash.store.changes import LivesRead
from tpudash.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.store.snapshot import Snapshot

LOOK = timedelta(seconds=10)


def november(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, tzinfo=UTC)


NOW = november(20, 12)


def row(usd: float, day: int) -> tuple[str, str, Price]:
    as_of = date(2026, 11, day)
    return "v6e", "any", Price(usd, "catalogue", as_of, "us-central1", Scheduling.SPOT)


@pytest.fixture
def book(tmp_path: Path) -> PriceBook:
    cache = PriceCache(tmp_path / "prices.json")
    cache.take([row(0.5, 1)], november(1, 1))
    cache.take([row(0.5, 1)], november(9, 20))
    cache.take([row(0.8, 10)], november(10, 6))
    cache.take([row(0.8, 10)], november(20, 11))
    return PriceBook.bundled().with_catalog(cache.load())


def node(name: str, state: str, created: datetime, **more: Any) -> Node:
    kind = more.pop("accelerator_type", "v6e-4")
    return make_node(name, state, run=None, accelerator_type=kind, create_time=created, **more)


STEADY, FLASH, AHEAD = november(4, 23, 58), november(12, 3), november(16, 10, 5)
LATE, MYSTERY = november(17), november(17, 23, 58)


def watch(history: NodeHistory, name: str, created: datetime, *looks: tuple[datetime, str]) -> None:
    for at, state in looks:
        history.record("demo", [node(name, state, created)] if state else [], at)


@pytest.fixture
def month(tmp_path: Path) -> Snapshot:
    history = NodeHistory(tmp_path / "history")
    begin, end = november(5), november(15)
    watch(
        history,
        "steady",
        STEADY,
        (begin - LOOK, "CREATING"),
        (begin, "READY"),
        (end - LOOK, "READY"),
        (end, "DELETING"),
        (end + LOOK, ""),
    )
    watch(
        history,
        "flash",
        FLASH,
        (november(12, 3, 0, 10), "CREATING"),
        (november(12, 3, 0, 20), "READY"),
        (november(12, 3, 0, 50), "PREEMPTED"),
        (november(12, 3, 1, 0), ""),
    )
    watch(
        history,
        "ahead",
        AHEAD,
        (november(16, 10) - LOOK, "CREATING"),
        (november(16, 10), "READY"),
        (november(16, 12) - LOOK, "READY"),
        (november(16, 12), "PREEMPTED"),
        (november(16, 12) + LOOK, ""),
    )
    listed = (
        node("late", "READY", LATE),
        node("mystery", "READY", MYSTERY, accelerator_type="v9-8"),
        node("euro", "READY", MYSTERY, zone="me-west1-a"),
    )
    ready = november(18)
    history.record("demo", [node(one.node_id, "CREATING", MYSTERY) for one in listed[1:2]], ready)
    store = Store()
    list_nodes(store, *listed, at=november(19, 12))
    list_nodes(store, *listed, at=NOW)
    report_source(store, "nodes")
    store.apply(LivesRead(history.lives("demo")))
    return store.snapshot


def test_the_total_by_hand_is_at_least(month: Snapshot, book: PriceBook) -> None:
    totals = project_totals(month, book, NOW)
    assert totals.accrued_usd == pytest.approx(899.20)
    assert totals.accrued_is_lower_bound
    assert totals.per_hour_usd == pytest.approx(3.20)
    assert totals.per_hour_is_lower_bound
    assert {name.rsplit("/", 1)[-1] for name in totals.unpriced} == {"mystery", "euro"}


@pytest.mark.parametrize(
    ("name", "usd", "at_least"),
    [
        ("steady", 624.0, False),
        ("flash", 0.0, False),
        ("ahead", 6.40, False),
        ("late", 268.80, True),
        ("mystery", None, True),
        ("euro", None, True),
    ],
)
def test_each_node_by_hand(
    month: Snapshot, book: PriceBook, name: str, usd: float | None, at_least: bool
) -> None:
    (life,) = [one for one in lives_of(month, book, NOW) if one.name.endswith(f"/{name}")]
    estimate = life.estimate
    assert estimate.accrued_usd == (None if usd is None else pytest.approx(usd))
    assert estimate.is_lower_bound is at_least


def test_each_day_is_charged_at_its_price(month: Snapshot, book: PriceBook) -> None:
    lives = [one for one in lives_of(month, book, NOW) if one.name.endswith("/steady")]
    for day, usd in ((9, 24 * 2.0), (10, 24 * 3.2), (15, 0.0)):
        found = cost_between(lives, november(day), november(day + 1))
        assert found.usd == pytest.approx(usd), day
    assert cost_between(lives, start_of_month(NOW), NOW).usd == pytest.approx(624.0)


def test_the_audit_log_makes_it_exact(month: Snapshot, book: PriceBook, tmp_path: Path) -> None:
    history = NodeHistory(tmp_path / "seen-late")
    history.record("demo", [node("late", "READY", LATE)], november(19, 12))
    name = node_name("late")

    def entry(at: datetime, method: str) -> LogEntry:
        payload = {"methodName": f"google.cloud.tpu.v2.Tpu.{method}", "resourceName": name}
        return LogEntry(at, Severity.NOTICE, method, payload=payload)

    told = [
        entry(november(17, 0, 0, 1), "CreateNode"),
        entry(november(17, 0, 10), "CreateNode"),
        entry(november(17, 12, 10), "StopNode"),
        entry(november(17, 12, 12), "StopNode"),
        entry(november(19, 6, 5), "StartNode"),
        entry(november(19, 6, 10), "StartNode"),
    ]
    store = Store()
    store.apply(LivesRead(with_audit(history.lives("demo"), told)))
    late = month.nodes[name]
    list_nodes(store, late, at=november(19, 12))
    list_nodes(store, late, at=NOW)
    found = node_costs(store.snapshot, book, NOW)[name]
    assert found.accrued_usd == pytest.approx((12 + 29 + 50 / 60) * 3.20)
    assert not found.is_lower_bound
