"""What could be given back, and alarms that go on once and off once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import (
    NOW,
    list_nodes,
    list_requests,
    make_attempt,
    make_node,
    make_request,
    make_run,
    make_spec,
    node_name,
    read_runs,
    report_source,
)
from tpudash.cost.alarms import AlarmBook
from tpudash.cost.cleanup import Candidate, CleanupRules, Reason, cleanup_candidates, marked
from tpudash.cost.lives import lives_of
from tpudash.cost.prices import PriceBook
from tpudash.diagnostics.checklist import run_checklist
from tpudash.diagnostics.evidence import gather
from tpudash.domain.alarm import AlarmLimits
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.node import Node, Scheduling
from tpudash.domain.run import Run, RunState
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tpudash.domain.request import QueuedResource

BOOK = PriceBook.bundled()
HOUR = timedelta(hours=1)


def candidates(
    *nodes: Node,
    runs: tuple[Run, ...] = (),
    requests: tuple[QueuedResource, ...] = (),
    rules: CleanupRules | None = None,
) -> tuple[Candidate, ...]:
    store = Store()
    list_nodes(store, *nodes, at=NOW - HOUR)
    read_runs(store, *runs)
    list_requests(store, *requests)
    return cleanup_candidates(store.snapshot, lives_of(store.snapshot, BOOK, NOW), NOW, rules)


def finished(**more: Any) -> Run:
    record = make_attempt(state="FINISHED", ended=NOW - HOUR, started=NOW - 2 * HOUR)
    return make_run(state=RunState.FINISHED, attempts=(record,), **more)


def test_a_run_that_trains_has_nothing_to_give_back() -> None:
    assert candidates(make_node(), runs=(make_run(),)) == ()


@pytest.mark.parametrize(
    ("node", "run", "reason", "why"),
    [
        (make_node(state="PREEMPTED"), make_run(), Reason.DEAD, "PREEMPTED and still listed"),
        (make_node(), finished(), Reason.IDLE, "its run demo is FINISHED"),
        (make_node(), make_run(state=RunState.DELETED), Reason.LEAKED, "demo was deleted"),
        (make_node(), make_run("other"), Reason.LEAKED, "its run demo has no record"),
        (
            make_node(),
            make_run(attempts=(make_attempt(), make_attempt(2))),
            Reason.LEAKED,
            "demo went on as attempt 2",
        ),
        (
            make_node(scheduling=Scheduling.PREEMPTIBLE, create_time=NOW - 25 * HOUR),
            make_run(),
            Reason.OVER_TIME,
            "preemptible, and older than 24 hours",
        ),
        (
            make_node(),
            make_run(spec=make_spec(max_cost_usd=0.5)),
            Reason.OVER_TIME,
            "demo may cost $0.50 and has cost $1.35",
        ),
        (
            make_node(run=None),
            None,
            Reason.IDLE,
            "it belongs to no run; what it does can't be seen",
        ),
    ],
)
def test_each_reason(node: Node, run: Run | None, reason: Reason, why: str) -> None:
    (found,) = candidates(node, runs=(run,) if run else ())
    assert (found.reason, found.why, found.name) == (reason, why, node_name("demo-1"))
    assert found.chips == 4
    assert found.is_ours is (node.run is not None)
    assert found.per_hour_usd == (0.0 if node.state == "PREEMPTED" else pytest.approx(1.35))


def test_an_age_limit_is_only_there_when_it_is_set() -> None:
    old = make_node(create_time=NOW - 30 * HOUR)
    assert candidates(old, runs=(make_run(),)) == ()
    rules = CleanupRules(max_age=24 * HOUR)
    (found,) = candidates(old, runs=(make_run(),), rules=rules)
    assert (found.reason, found.why) == (Reason.OVER_TIME, "created 30 hours ago")


def test_nothing_is_called_leaked_while_runs_cannot_be_read() -> None:
    rules = CleanupRules(runs_known=False)
    assert candidates(make_node(), rules=rules) == ()
    assert (
        candidates(make_node(), make_node("x-1", run=None), runs=(finished(),), rules=rules) == ()
    )


def test_a_node_that_is_being_deleted_is_left_to_it() -> None:
    assert candidates(make_node(state="DELETING"), runs=(finished(),)) == ()


def test_a_run_that_has_just_ended_is_not_idle_yet() -> None:
    record = make_attempt(state="FINISHED", ended=NOW - timedelta(minutes=1))
    just = make_run(state=RunState.FINISHED, attempts=(record,))
    assert candidates(make_node(), runs=(just,)) == ()


def test_dead_requests_hold_quota_and_cost_nothing() -> None:
    request = make_request(state="SUSPENDED", labels={"tpudash-run": "demo"})
    (found,) = candidates(requests=(request, make_request("waiting-2")))
    assert (found.reason, found.is_node, found.is_ours) == (Reason.DEAD_REQUEST, False, True)
    assert found.per_hour_usd == 0.0


def test_the_dearest_comes_first_and_what_is_not_ours_is_never_marked() -> None:
    mine = make_node(state="PREEMPTED")
    foreign = make_node("big-1", run=None, accelerator_type="v3-8", scheduling=Scheduling.ON_DEMAND)
    found = candidates(mine, foreign, runs=(make_run(),))
    assert [one.name for one in found] == [node_name("big-1"), node_name("demo-1")]
    assert [one.name for one in marked(found)] == [node_name("demo-1")]
    assert [one.name for one in marked(found, ["big-1"])] == [node_name("big-1")]
    assert [one.name for one in marked(found, ["demo"])] == [node_name("demo-1")]
    assert marked(found, ["nobody"]) == ()


# Alarms


def finding(verdict: Verdict, subject: str = "demo-1", check: str = "node-idle") -> Finding:
    return Finding(check, "Node is in use", verdict, "READY, but idle", subject=subject)


def test_an_alarm_goes_on_once_and_off_once() -> None:
    book = AlarmBook()
    (on,) = book.update([finding(Verdict.WARN)], NOW)
    assert (on.is_on, on.text) == (True, "demo-1: READY, but idle")
    for minute in range(1, 5):
        again = replace(finding(Verdict.WARN), evidence=f"idle for {minute} min")
        assert book.update([again], NOW + timedelta(minutes=minute)) == ()
    assert book.update([finding(Verdict.FAIL)], NOW) == ()
    (off,) = book.update([finding(Verdict.PASS)], NOW)
    assert (off.is_on, off.text) == (False, "over: demo-1: Node is in use again")
    assert book.update([finding(Verdict.PASS)], NOW) == ()
    assert book.on == ()


def test_what_is_not_known_changes_no_alarm() -> None:
    book = AlarmBook()
    assert book.update([finding(Verdict.UNKNOWN)], NOW) == ()
    book.update([finding(Verdict.WARN)], NOW)
    assert book.update([finding(Verdict.UNKNOWN)], NOW) == ()
    assert [alarm.since for alarm in book.on] == [NOW]


def test_an_alarm_about_what_is_gone_is_over() -> None:
    book = AlarmBook()
    book.update([finding(Verdict.WARN), finding(Verdict.WARN, "demo-2")], NOW)
    (off,) = book.update([finding(Verdict.WARN, "demo-2")], NOW)
    assert (off.is_on, off.alarm.subject) == (False, "demo-1")


def test_other_checks_are_no_alarms() -> None:
    assert AlarmBook().update([finding(Verdict.FAIL, check="run-stalled")], NOW) == ()


def test_the_burn_rate_of_a_whole_checklist_on_and_off() -> None:
    store, book = Store(), AlarmBook()
    events = []
    for minute, state in enumerate(["CREATING", "READY", "READY", "STOPPED", "READY", "READY"]):
        now = NOW + timedelta(minutes=minute)
        list_nodes(store, make_node(state=state, create_time=NOW), at=now)
        read_runs(store, make_run(last_heard=now))
        report_source(store, "nodes", last_success=now)
        rows = run_checklist(gather(store, BOOK, now, limits=AlarmLimits(1.0)), join=False)
        events += [
            (minute, change.is_on)
            for change in book.update(rows, now)
            if change.alarm.check_id == "burn-rate"
        ]
    assert events == [(1, True), (3, False), (4, True)]


@pytest.mark.parametrize(("idle_minutes", "alarms"), [(3, 1), (30, 0)])
def test_for_how_long_a_node_may_be_idle_is_set(idle_minutes: int, alarms: int) -> None:
    store, book = Store(), AlarmBook()
    ended = NOW - timedelta(minutes=10)
    done = make_attempt(1, state="FINISHED", ended=ended)
    list_nodes(store, make_node())
    read_runs(store, make_run(state=RunState.FINISHED, attempts=(done,)))
    report_source(store, "nodes")
    report_source(store, "runs")
    limits = AlarmLimits(None, timedelta(minutes=idle_minutes))
    rows = run_checklist(gather(store, BOOK, NOW, limits=limits), join=False)
    idle = [one for one in book.update(rows, NOW) if one.alarm.check_id == "node-idle"]
    assert len(idle) == alarms
