"""A month of one run with preemptions, hour by hour, against a total that was worked out by hand.

v2-8 on spot in us-central1 is 4 chips x $0.3375 = $1.35 an hour, on demand 4 x $1.125 = $4.50.

November 2026, all times UTC:

| Node   | READY                          | Hours  | Ended by                       | Charged |
|--------|--------------------------------|--------|--------------------------------|---------|
| demo-1 | 28 Oct 22:00 to 1 Nov 02:00    | 76     | preemption                     | 76      |
| demo-2 | 1 Nov 03:00:20 to 03:00:50     | 30 s   | preemption in its first minute | 0       |
| demo-3 | 1 Nov 04:00 to 10 Nov 04:00    | 216    | preemption                     | 216     |
| demo-4 | 10 Nov 05:00 to 10 Nov 06:00   | 1      | failure, nothing saved         | 1       |
|        | and idle until 10 Nov 09:00    | 3      | deletion                       | 3       |
| demo-5 | 10 Nov 10:00, still READY      | to now | now is 20 Nov 12:00            | 242     |
| stray  | 20 Nov 06:00, still READY      | 6      | on demand, of no run           | 6       |

Run in all: 76 + 0 + 216 + 1 + 3 + 242 = 538 hours, $726.30.
In November: 2 of demo-1's hours, so 2 + 216 + 1 + 3 + 242 = 464 hours of spot, $626.40.
Today (20 November): 12 hours of spot, $16.20, and 6 on demand, $27.00.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import list_nodes, make_attempt, make_node, make_run, make_spec, read_runs
from tpudash.cost.estimate import project_totals, run_cost_in
from tpudash.cost.history import NodeHistory
from tpudash.cost.lives import lives_of
from tpudash.cost.prices import PriceBook
from tpudash.cost.report import (
    compare_scheduling,
    cost_between,
    cost_by_owner,
    start_of_day,
    start_of_month,
    usd_per_1000_steps,
    waste_of,
)
from tpudash.domain.node import Node, Scheduling
from tpudash.domain.run import RunState
from tpudash.store.changes import LivesRead
from tpudash.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import Snapshot

BOOK = PriceBook.bundled()
SPOT, ON_DEMAND = 1.35, 4.50
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LOOK = timedelta(seconds=10)


def november(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, second, tzinfo=UTC)


FIRST = datetime(2026, 10, 28, 22, tzinfo=UTC)
LIVES: dict[int, tuple[datetime, datetime | None]] = {
    1: (FIRST, november(1, 2)),
    2: (november(1, 3, 0, 20), november(1, 3, 0, 50)),
    3: (november(1, 4), november(10, 4)),
    4: (november(10, 5), november(10, 9)),
    5: (november(10, 10), None),
}


def node(attempt: int, state: str) -> Node:
    ready = LIVES[attempt][0]
    # demo-2 was made within its minute; the others took two minutes.
    created = ready - timedelta(seconds=20 if attempt == 2 else 120)
    return make_node(f"demo-{attempt}", state, create_time=created)


def stray(state: str = "READY") -> Node:
    return make_node(
        "stray",
        state,
        run=None,
        scheduling=Scheduling.ON_DEMAND,
        create_time=november(20, 5, 58),
    )


def record(attempt: int, state: str, **more: Any) -> AttemptRecord:
    begin, end = LIVES[attempt]
    return make_attempt(attempt, state=state, started=begin, updated=end or NOW, ended=end, **more)


def attempts() -> tuple[AttemptRecord, ...]:
    """Attempt 1 loses 50 steps, 3 loses 80; 4 saves nothing before it fails after an hour."""
    return (
        record(1, "PREEMPTED", restored_step=0, step=7_600, checkpoint_step=7_550),
        record(2, "PREEMPTED", restored_step=None, step=None, checkpoint_step=None),
        record(
            3, "PREEMPTED", restored_step=7_550, steps_lost=50, step=29_150, checkpoint_step=29_070
        ),
        replace(
            record(
                4, "FAILED", restored_step=29_070, steps_lost=80, step=29_100, checkpoint_step=None
            ),
            ended=november(10, 6),
        ),
        record(
            5, "TRAINING", restored_step=29_070, steps_lost=30, step=53_270, checkpoint_step=53_200
        ),
    )


def run() -> Run:
    return make_run(
        spec=make_spec(attempt=5, target_step=60_000, created=FIRST),
        attempts=attempts(),
        step=53_270,
        target_step=60_000,
        checkpoint_step=53_200,
    )


def play(history: NodeHistory) -> None:
    """Look at the project whenever something happens, and just before it, over the whole month."""
    for attempt, (ready, end) in LIVES.items():
        history.record("demo", [node(attempt, "CREATING")], ready - LOOK)
        history.record("demo", [node(attempt, "READY")], ready)
        if end is None:
            continue
        history.record("demo", [node(attempt, "READY")], end - LOOK)
        last = "DELETING" if attempt == 4 else "PREEMPTED"
        history.record("demo", [node(attempt, last)], end)
        history.record("demo", [node(attempt, "DELETING")], end + LOOK)
        history.record("demo", [], end + 2 * LOOK)
    before = november(20, 6)
    history.record("demo", [node(5, "READY"), stray("CREATING")], before - LOOK)
    history.record("demo", [node(5, "READY"), stray()], before)


@pytest.fixture
def month(tmp_path: Path) -> Snapshot:
    history = NodeHistory(tmp_path / "history")
    play(history)
    store = Store()
    list_nodes(store, node(5, "READY"), stray(), at=NOW)
    read_runs(store, run())
    store.apply(LivesRead(history.lives("demo")))
    return store.snapshot


def test_the_run_as_a_whole(month: Snapshot) -> None:
    cost = run_cost_in(month, run(), BOOK, NOW)
    assert cost.accrued_usd == pytest.approx(538 * SPOT)
    assert cost.accrued_usd == pytest.approx(726.30)
    assert cost.per_hour_usd == pytest.approx(SPOT)
    assert not cost.is_lower_bound


def test_the_project_the_month_and_the_day(month: Snapshot) -> None:
    totals = project_totals(month, BOOK, NOW)
    assert totals.accrued_usd == pytest.approx(538 * SPOT + 6 * ON_DEMAND)
    assert totals.per_hour_usd == pytest.approx(SPOT + ON_DEMAND)
    assert not totals.accrued_is_lower_bound
    lives = lives_of(month, BOOK, NOW)
    assert len(lives) == 6
    in_month = cost_between(lives, start_of_month(NOW), NOW)
    assert in_month.usd == pytest.approx(464 * SPOT + 6 * ON_DEMAND)
    assert not in_month.is_lower_bound
    today = cost_between(lives, start_of_day(NOW), NOW)
    assert today.usd == pytest.approx(16.20 + 27.00)
    october = cost_between(lives, datetime(2026, 10, 1, tzinfo=UTC), start_of_month(NOW))
    assert october.usd == pytest.approx(74 * SPOT)


def test_owners(month: Snapshot) -> None:
    by_owner = cost_by_owner(lives_of(month, BOOK, NOW))
    assert list(by_owner) == ["alice", None]
    assert by_owner["alice"].accrued_usd == pytest.approx(538 * SPOT)
    assert by_owner[None].accrued_usd == pytest.approx(27.0)


def test_waste(month: Snapshot) -> None:
    """Idle: 3 h of demo-4. Lost: 50 steps of 7,600 in 76 h (0.5 h), and 80 of 21,600 in 216 h
    (0.8 h). Failed: the one hour of demo-4; its 30 lost steps are in that hour.
    """
    lives = [life for life in lives_of(month, BOOK, NOW) if life.run == "demo"]
    waste = waste_of(run(), lives, NOW)
    assert waste.idle_usd == pytest.approx(3 * SPOT)
    assert waste.failed_usd == pytest.approx(1 * SPOT)
    assert waste.lost_usd == pytest.approx(0.8 * SPOT)
    assert waste.total_usd == pytest.approx(4.8 * SPOT)


def test_a_stray_node_is_all_waste(month: Snapshot) -> None:
    lives = [life for life in lives_of(month, BOOK, NOW) if life.run is None]
    assert waste_of(None, lives, NOW).idle_usd == pytest.approx(27.0)


def test_what_nobody_saw_of_a_stray_node_makes_its_waste_a_least(month: Snapshot) -> None:
    (life,) = [life for life in lives_of(month, BOOK, NOW) if life.run is None]
    unseen = replace(life, ready=replace(life.ready, spans=(), is_lower_bound=True))
    both = waste_of(None, [life, unseen], NOW)
    assert both.idle_usd == pytest.approx(27.0)
    assert both.is_lower_bound
    assert waste_of(None, [unseen], NOW).idle_usd is None


def test_spot_against_on_demand(month: Snapshot) -> None:
    """On demand there is no preemption: what demo-3 lost (80 of 21,600 steps) is not done again,
    and demo-2's 30 seconds are paid for.
    """
    lives = [life for life in lives_of(month, BOOK, NOW) if life.run == "demo"]
    found = compare_scheduling(run(), lives, BOOK)
    assert found.preemptions == 3
    assert found.spot_usd == pytest.approx(538 * SPOT)
    hours = 538 - 0.8 + 30 / 3600
    assert found.on_demand_usd == pytest.approx(hours * ON_DEMAND)
    assert not found.spot_is_lower_bound


def test_a_thousand_steps(month: Snapshot) -> None:
    lives = [life for life in lives_of(month, BOOK, NOW) if life.run == "demo"]
    assert usd_per_1000_steps(run(), lives).usd == pytest.approx(726.30 / 53.27)


def test_without_history_the_same_month_is_at_least(month: Snapshot) -> None:
    """Records alone tell of all but the idle hours of demo-4, and say that it is a lower bound."""
    bare = replace(month, lives=())
    cost = run_cost_in(bare, run(), BOOK, NOW)
    assert cost.is_lower_bound
    assert cost.accrued_usd == pytest.approx((538 - 3) * SPOT)


def test_a_run_that_is_over_makes_its_node_idle() -> None:
    store = Store()
    begin = NOW - timedelta(hours=5)
    only = make_attempt(
        1, state="FINISHED", started=begin, updated=NOW, ended=NOW - timedelta(hours=2)
    )
    finished = make_run(state=RunState.FINISHED, attempts=(only,))
    list_nodes(store, make_node("demo-1", create_time=begin), at=NOW)
    read_runs(store, finished)
    waste = waste_of(finished, lives_of(store.snapshot, BOOK, NOW), NOW)
    assert waste.idle_usd == pytest.approx(2 * SPOT)
