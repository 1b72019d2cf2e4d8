"""Why a run could not be created, and what helps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    list_nodes,
    make_attempt,
    make_node,
    make_progress,
    make_run,
    make_spec,
    report_progress,
)
from tests.unit.diagnostics.cases import (
    ago,
    check_run,
    healthy_store,
)
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy, Scope
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.operation import OperationState
from tpudash.domain.run import RunState

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE
# run_created


def launching(**more: Any) -> Any:
    return make_run(state=RunState.FAILED, **{"attempts": (), "last_heard": None, **more})


def failure(kind: ErrorClass, words: str = "no more capacity", **scope: Any) -> Failure:
    return Failure(kind, words, "", RetryPolicy.NEVER, Scope(**scope))


def after_operation(run: Any, **more: Any) -> Finding:
    store = healthy_store()
    fields = {"state": OperationState.FAILED, "message": "the creation failed", **more}
    report_progress(store, make_progress(**fields))
    return check_run("run_created", run, store=store)


def test_a_stock_out_names_other_zones_with_their_price() -> None:
    finding = after_operation(launching(), failure=failure(ErrorClass.STOCKOUT))
    assert finding.verdict is FAIL
    assert finding.evidence == "STOCKOUT in us-central1-b: no more capacity"
    assert "us-central1-b" in finding.advice
    assert "us-central1-c ($1.35/h)" in finding.advice
    assert "europe-west4-a ($1.26/h)" in finding.advice
    assert "on-demand in us-central1-b costs $4.50/h" in finding.advice
    assert finding.action == "launch"
    assert finding.command is not None
    assert "--accelerator v2-8 --zone us-central1-c --spot --bucket /tmp/b" in finding.command


def test_a_permission_is_the_same_in_every_zone() -> None:
    finding = after_operation(launching(), failure=failure(ErrorClass.PERMISSION, "denied"))
    assert "PERMISSION" in finding.evidence
    assert "also offered" not in finding.advice
    assert finding.command is not None
    assert "--zone us-central1-b" in finding.command


def test_the_failure_in_the_runs_own_record_counts_too() -> None:
    spec = make_spec(failure={"error_class": "QUOTA", "evidence": "Limit: 0", "advice": "ask"})
    finding = check_run("run_created", launching(spec=spec))
    assert finding.verdict is FAIL
    assert "QUOTA in us-central1-b: Limit: 0" in finding.evidence
    assert finding.advice.startswith("ask v2-8 spot is also offered")


def test_a_failed_resume_is_resumed_again() -> None:
    run = make_run(state=RunState.PREEMPTED, attempts=(make_attempt(started=ago(hours=3)),))
    finding = after_operation(run, failure=failure(ErrorClass.STOCKOUT))
    assert finding.verdict is FAIL
    assert (finding.action, finding.command) == ("resume", "tpudash resume demo")


@pytest.mark.parametrize(
    "more",
    [
        {"state": OperationState.UNKNOWN},
        {"failure": failure(ErrorClass.UNKNOWN_OUTCOME, "no answer within 60 s")},
    ],
)
def test_an_unknown_outcome_is_looked_at_and_not_done_again(more: dict[str, Any]) -> None:
    finding = after_operation(launching(), **more)
    assert finding.verdict is WARN
    assert "UNKNOWN_OUTCOME" in finding.evidence
    assert finding.action is None
    assert finding.command == "tpudash nodes"


def test_a_failure_that_was_overcome_is_past() -> None:
    past = {"failure": failure(ErrorClass.STOCKOUT), "updated": ago(hours=2)}
    assert after_operation(make_run(), **past).verdict is PASS
    later = make_attempt(started=ago(hours=1), state="PREEMPTED")
    again = make_run(state=RunState.PREEMPTED, attempts=(later,))
    assert after_operation(again, **past).verdict is PASS


def test_the_newest_operation_counts() -> None:
    store = healthy_store()
    old = make_progress(
        "op-1",
        state=OperationState.FAILED,
        failure=failure(ErrorClass.STOCKOUT),
        updated=ago(hours=1),
    )
    report_progress(store, old)
    report_progress(store, make_progress("op-2", updated=NOW))
    run = make_run(state=RunState.LAUNCHING, attempts=())
    finding = check_run("run_created", run, store=store)
    assert finding.verdict is NOT_APPLICABLE
    assert "under way" in finding.evidence


@pytest.mark.parametrize(
    ("run", "nodes", "verdict"),
    [
        (make_run(), (), PASS),
        (make_run(state=RunState.LAUNCHING, attempts=()), (make_node(),), PASS),
        (make_run(state=RunState.WAITING, attempts=()), (), UNKNOWN),
        (make_run(state=RunState.DELETED), (), NOT_APPLICABLE),
    ],
)
def test_run_created(run: Any, nodes: Any, verdict: Verdict) -> None:
    assert check_run("run_created", run, *nodes).verdict is verdict


def test_times_are_those_of_the_snapshot_where_the_record_has_none() -> None:
    store = healthy_store()
    list_nodes(store, make_node(), at=ago(hours=3))
    record = make_attempt(state="TRAINING", ended=None)
    run = make_run(state=RunState.PREEMPTED, attempts=(record,))
    finding = check_run("run_preempted", run, make_node("demo-1", "PREEMPTED"), store=store)
    assert "was PREEMPTED 2 h ago" in finding.evidence
    assert finding.as_of == NOW - timedelta(seconds=3)
