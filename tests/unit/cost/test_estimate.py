"""Costs by value: a v2-8 on spot in us-central1 is 4 chips x $0.3375 = $1.35 an hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    list_nodes,
    make_attempt,
    make_node,
    make_run,
    make_spec,
    node_name,
    read_runs,
    report_source,
)
from tpudash.cost.estimate import (
    attempt_cost,
    combine,
    node_cost,
    node_costs,
    project_totals,
    run_cost,
    run_cost_in,
)
from tpudash.cost.prices import PriceBook
from tpudash.domain.node import Node, Scheduling
from tpudash.domain.price import CostEstimate
from tpudash.domain.run import AttemptRecord, RunState
from tpudash.store.snapshot import NodeTimes, SourceState
from tpudash.store.store import Store

BOOK = PriceBook.bundled()
RATE = 1.35


def ago(**spans: float) -> datetime:
    return NOW - timedelta(**spans)


def watched(ready: datetime, until: datetime | None = None) -> NodeTimes:
    """A node whose change to READY was seen."""
    return NodeTimes(ready - timedelta(minutes=2), until or ready, ready, until)


def found(seen: datetime, state: str = "READY") -> NodeTimes:
    """A node that was in its state already when it was first listed."""
    return NodeTimes(seen, seen, seen if state == "READY" else None)


def cost(
    node: Node, times: NodeTimes | None = None, attempt: AttemptRecord | None = None, **more: Any
) -> CostEstimate:
    return node_cost(node, times, attempt, BOOK, NOW, **more)


def test_a_watched_node_costs_its_time_since_ready() -> None:
    estimate = cost(make_node(), watched(ago(minutes=20)))
    assert estimate.per_hour_usd == pytest.approx(RATE)
    assert estimate.accrued_usd == pytest.approx(RATE / 3)
    assert not estimate.is_lower_bound
    assert estimate.price is not None
    assert estimate.price.is_example


def test_without_a_watched_change_the_start_of_the_agent_counts() -> None:
    node = make_node(create_time=ago(minutes=62))
    estimate = cost(node, found(ago(minutes=1)), make_attempt(started=ago(hours=1)))
    assert estimate.accrued_usd == pytest.approx(RATE)
    assert not estimate.is_lower_bound


def test_an_agent_that_began_long_after_the_creation_leaves_a_gap() -> None:
    node = make_node(create_time=ago(hours=10))
    estimate = cost(node, None, make_attempt(started=ago(hours=1)))
    assert estimate.accrued_usd == pytest.approx(RATE)
    assert estimate.is_lower_bound


def test_without_any_other_evidence_the_creation_counts() -> None:
    young = cost(make_node(create_time=ago(minutes=6)))
    assert young.accrued_usd == pytest.approx(RATE / 10)
    assert not young.is_lower_bound
    seen_late = cost(make_node(create_time=ago(hours=10)), found(NOW))
    assert seen_late.accrued_usd == pytest.approx(10 * RATE)
    assert seen_late.is_lower_bound


def test_a_second_life_of_a_node_is_not_the_whole_cost() -> None:
    estimate = cost(make_node(), watched(ago(hours=1)), make_attempt(started=ago(hours=5)))
    assert estimate.accrued_usd == pytest.approx(RATE)
    assert estimate.is_lower_bound


@pytest.mark.parametrize("state", ["PREEMPTED", "STOPPED", "TERMINATED", "DELETING", "REPAIRING"])
def test_a_node_that_is_not_ready_costs_nothing_now_and_what_it_had_cost(state: str) -> None:
    node = make_node("demo-1", state)
    estimate = cost(node, watched(ago(hours=3), ago(hours=1)))
    assert estimate.per_hour_usd == 0.0
    assert estimate.accrued_usd == pytest.approx(2 * RATE)
    assert not estimate.is_lower_bound


@pytest.mark.parametrize("state", ["UNKNOWN", "STATE_UNSPECIFIED", "SOMETHING_NEW"])
def test_of_a_state_that_says_nothing_the_rate_is_unknown(state: str) -> None:
    assert cost(make_node("demo-1", state)).per_hour_usd is None


def test_an_unseen_end_is_the_agents_last_word_and_a_lower_bound() -> None:
    node = make_node("demo-1", "PREEMPTED", create_time=ago(minutes=125))
    dead = found(NOW, "PREEMPTED")
    attempt = make_attempt(started=ago(hours=2), updated=ago(hours=1))
    estimate = cost(node, dead, attempt)
    assert estimate.accrued_usd == pytest.approx(RATE)
    assert estimate.is_lower_bound
    ended = make_attempt(state="PREEMPTED", started=ago(hours=2), ended=ago(hours=1))
    assert cost(node, dead, ended).accrued_usd == pytest.approx(RATE)
    assert not cost(node, dead, ended).is_lower_bound


def test_a_failed_attempt_does_not_end_its_node() -> None:
    node = make_node("demo-1", "STOPPED", create_time=ago(minutes=125))
    failed = make_attempt(state="FAILED", started=ago(hours=2), ended=ago(hours=1))
    assert cost(node, found(NOW, "STOPPED"), failed).is_lower_bound


def test_without_any_end_nothing_is_known() -> None:
    estimate = cost(make_node("demo-1", "TERMINATED"), found(NOW, "TERMINATED"))
    assert estimate.per_hour_usd == 0.0
    assert estimate.accrued_usd is None
    assert estimate.is_lower_bound


@pytest.mark.parametrize(
    ("lived_s", "scheduling", "state", "usd"),
    [
        (59, Scheduling.SPOT, "PREEMPTED", 0.0),
        (60, Scheduling.PREEMPTIBLE, "PREEMPTED", 0.0),
        (61, Scheduling.SPOT, "PREEMPTED", 41 * RATE / 3600),
        (59, Scheduling.SPOT, "STOPPED", 39 * RATE / 3600),
        (59, Scheduling.ON_DEMAND, "PREEMPTED", 39 * 4.5 / 3600),
    ],
)
def test_a_preemption_within_a_minute_of_the_creation_is_free(
    lived_s: int, scheduling: Scheduling, state: str, usd: float
) -> None:
    created = ago(hours=1)
    node = make_node("demo-1", state, create_time=created, scheduling=scheduling)
    times = NodeTimes(
        created,
        created + timedelta(seconds=lived_s),
        created + timedelta(seconds=20),
        created + timedelta(seconds=lived_s),
    )
    assert cost(node, times).accrued_usd == pytest.approx(usd)


def test_a_node_in_creation_costs_nothing() -> None:
    estimate = cost(make_node("demo-1", "CREATING"), found(ago(minutes=4), "CREATING"))
    assert (estimate.per_hour_usd, estimate.accrued_usd) == (0.0, 0.0)
    assert not estimate.is_lower_bound
    assert cost(make_node("demo-1", "CREATING")).accrued_usd == 0.0


def test_a_node_of_unknown_price_costs_an_unknown_amount() -> None:
    node = make_node(accelerator_type="v9-8")
    estimate = cost(node, watched(ago(hours=1)))
    assert estimate.per_hour_usd is None
    assert estimate.accrued_usd is None
    assert estimate.is_lower_bound


def test_a_vanished_node_has_cost_until_it_vanished() -> None:
    estimate = cost(make_node(), watched(ago(hours=3)), vanished=ago(hours=1))
    assert estimate.per_hour_usd == 0.0
    assert estimate.accrued_usd == pytest.approx(2 * RATE)


def test_clocks_that_disagree_never_make_a_cost_negative() -> None:
    assert cost(make_node(), watched(NOW + timedelta(minutes=5))).accrued_usd == 0.0


def test_a_run_costs_all_its_attempts() -> None:
    first = make_attempt(
        1, state="PREEMPTED", started=ago(hours=9), updated=ago(hours=7), ended=ago(hours=7)
    )
    second = make_attempt(2, started=ago(hours=1))
    node = make_node("demo-2", create_time=ago(minutes=63))
    run = make_run(attempts=(first, second))
    estimate = run_cost(run, [node, make_node("other-1", run="other")], {}, BOOK, NOW)
    assert estimate.per_hour_usd == pytest.approx(RATE)
    assert estimate.accrued_usd == pytest.approx(3 * RATE)
    assert not estimate.is_lower_bound


def test_a_finished_attempt_without_its_node_is_a_lower_bound() -> None:
    record = make_attempt(state="FINISHED", started=ago(hours=3), ended=ago(hours=1))
    estimate = attempt_cost(record, make_run(), BOOK, NOW)
    assert estimate.per_hour_usd == 0.0
    assert estimate.accrued_usd == pytest.approx(2 * RATE)
    assert estimate.is_lower_bound


def test_an_attempt_is_priced_by_its_own_zone_and_type() -> None:
    record = make_attempt(
        state="PREEMPTED",
        started=ago(hours=3),
        ended=ago(hours=1),
        zone="europe-west4-a",
        accelerator_type="v3-8",
    )
    run = make_run(spec=make_spec(scheduling=Scheduling.ON_DEMAND))
    assert attempt_cost(record, run, BOOK, NOW).accrued_usd == pytest.approx(2 * 8.8)


def test_an_attempt_without_a_spec_has_no_known_price() -> None:
    estimate = attempt_cost(make_attempt(), make_run(spec=None), BOOK, NOW)
    assert estimate.accrued_usd is None
    assert estimate.is_lower_bound


def test_a_run_without_nodes_or_attempts_costs_nothing() -> None:
    assert run_cost(make_run(attempts=()), [], {}, BOOK, NOW) == CostEstimate(0, 0)


def test_sums_leave_out_what_is_unknown_and_say_so() -> None:
    known, unknown = CostEstimate(1.0, 5.0), CostEstimate(None, None)
    assert combine([known, known]) == CostEstimate(2.0, 10.0)
    assert combine([known, unknown]) == CostEstimate(1.0, 5.0, is_lower_bound=True)
    assert combine([unknown]) == CostEstimate(None, None, is_lower_bound=True)
    assert combine([]) == CostEstimate(0, 0)


def _store() -> Store:
    store = Store()
    old = make_node("old-1", run="old")
    list_nodes(store, old, at=ago(hours=6))
    list_nodes(store, make_node("demo-1", "CREATING"), at=ago(hours=4))
    stray = make_node("stray", run=None, scheduling=Scheduling.ON_DEMAND, create_time=ago(hours=2))
    list_nodes(store, make_node("demo-1"), stray, at=ago(hours=2))
    read_runs(store, make_run(attempts=()))
    return store


def test_project_totals_count_each_node_once() -> None:
    snapshot = _store().snapshot
    by_node = node_costs(snapshot, BOOK, NOW)
    assert by_node[node_name("demo-1")].accrued_usd == pytest.approx(2 * RATE)
    assert by_node[node_name("stray")].accrued_usd == pytest.approx(9.0)
    gone = by_node[node_name("old-1")]
    assert gone.per_hour_usd == 0.0
    totals = project_totals(snapshot, BOOK, NOW)
    assert totals.per_hour_usd == pytest.approx(RATE + 4.5)
    assert totals.accrued_usd == pytest.approx(2 * RATE + 9.0 + (gone.accrued_usd or 0))
    assert totals.billing_nodes == 2
    assert not totals.per_hour_is_lower_bound
    assert totals.uses_example_prices


def test_project_totals_are_at_least_when_a_price_or_a_zone_is_unknown() -> None:
    store = _store()
    before = list(store.snapshot.nodes.values())
    list_nodes(store, *before, make_node("odd-1", run=None, accelerator_type="v9-8"))
    totals = project_totals(store.snapshot, BOOK, NOW)
    assert totals.per_hour_usd == pytest.approx(RATE + 4.5)
    assert totals.per_hour_is_lower_bound
    assert totals.accrued_is_lower_bound
    assert totals.unpriced == (node_name("odd-1"),)
    list_nodes(store, *before, silent=["us-east1-b"])
    assert project_totals(store.snapshot, BOOK, NOW).per_hour_is_lower_bound


def test_project_totals_of_nothing_heard_are_unknown() -> None:
    store = Store()
    assert project_totals(store.snapshot, BOOK, NOW).per_hour_usd is None
    report_source(store, "nodes", SourceState.OK)
    totals = project_totals(store.snapshot, BOOK, NOW)
    assert (totals.per_hour_usd, totals.accrued_usd) == (0, 0)
    assert not totals.per_hour_is_lower_bound


def test_a_run_in_a_snapshot_keeps_what_its_vanished_node_cost() -> None:
    store = Store()
    list_nodes(store, make_node("demo-1", "CREATING"), at=ago(hours=5))
    list_nodes(store, make_node("demo-1"), at=ago(hours=4))
    list_nodes(store, at=ago(hours=1))
    run = make_run("demo", RunState.DELETED, attempts=())
    read_runs(store, run)
    estimate = run_cost_in(store.snapshot, run, BOOK, NOW)
    assert estimate.per_hour_usd == 0.0
    assert estimate.accrued_usd == pytest.approx(3 * RATE)
    assert not estimate.is_lower_bound
