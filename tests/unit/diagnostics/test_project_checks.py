"""Checks of the project, each with what passes, what fails, what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tui.factories import (
    list_nodes,
    list_requests,
    make_node,
    make_progress,
    make_request,
    make_run,
    read_runs,
    report_progress,
    report_source,
)
from tests.unit.diagnostics.cases import ago, check_project, check_with, evidence, healthy_store
from tpudash.domain.alarm import AlarmLimits
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.finding import Verdict
from tpudash.domain.node import Scheduling
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("failing", "verdict"),
    [((), PASS), (("prices", "checklist"), PASS), (("metrics",), WARN), (("nodes", "logs"), FAIL)],
)
def test_api_answers(failing: tuple[str, ...], verdict: Verdict) -> None:
    store = healthy_store()
    for name in failing:
        report_source(
            store,
            name,
            SourceState.FAILING,
            title=f"{name} denied",
            detail="403",
            hint=f"ask for {name}",
            last_success=ago(minutes=7),
        )
    finding = check_project("api_answers", store=store)
    assert finding.verdict is verdict
    if verdict in {WARN, FAIL}:
        assert f"{failing[0]}: {failing[0]} denied: 403 (last answered 7 min ago)" in (
            finding.evidence
        )
        assert f"ask for {failing[0]}" in finding.advice


def test_a_source_that_is_throttled_is_told_with_its_pace() -> None:
    store = healthy_store()
    report_source(store, "nodes", SourceState.THROTTLED, interval_s=48.0)
    finding = check_project("api_answers", store=store)
    assert finding.verdict is WARN
    assert "nodes every 48 s" in finding.evidence
    assert finding.advice


def test_what_was_never_heard_is_unknown() -> None:
    assert check_project("api_answers", store=Store()).verdict is UNKNOWN
    never = healthy_store()
    report_source(never, "nodes", SourceState.FAILING, last_success=None)
    assert "never answered" in check_project("api_answers", store=never).evidence


def test_zones_reachable() -> None:
    assert check_project("zones_reachable").verdict is PASS
    assert check_project("zones_reachable", store=Store()).verdict is UNKNOWN
    store = healthy_store()
    list_nodes(store, at=ago(minutes=9), silent=("us-east1-b",))
    finding = check_with("zones_reachable", evidence_of(store))
    assert finding.verdict is WARN
    assert "us-east1-b (for 9 min)" in finding.evidence


def evidence_of(store: Store, **more: Any) -> Any:
    """Evidence of a store as it is, without another listing."""
    return evidence(store=Store(), **more, snapshot=store.snapshot)


@pytest.mark.parametrize("state", ["FAILED", "SUSPENDED"])
def test_dead_requests(state: str) -> None:
    store = healthy_store()
    list_requests(store, make_request(), make_request("dead", state=state, failure="no quota"))
    finding = check_project("dead_requests", store=store)
    assert finding.verdict is WARN
    assert finding.evidence == f"dead is {state} (no quota)"
    assert finding.command is not None
    assert "delete dead --zone=us-central1-b" in finding.command


def test_living_requests_and_unheard_ones() -> None:
    store = healthy_store()
    list_requests(store, make_request())
    assert check_project("dead_requests", store=store).verdict is PASS
    assert check_project("dead_requests", store=Store()).verdict is UNKNOWN


def spending(*nodes: Any, **more: Any) -> Any:
    return check_with("burn_rate", evidence(*nodes, **more))


def test_burn_rate() -> None:
    spot, on_demand = make_node(), make_node("stray", run=None, scheduling=Scheduling.ON_DEMAND)
    finding = spending(spot, on_demand, runs=(make_run(),))
    assert finding.verdict is PASS
    assert finding.evidence.startswith("$5.85/h for 2 READY nodes; ")
    assert "by example spot prices" in finding.evidence
    assert "example" not in spending(on_demand).evidence
    assert spending(spot, on_demand, limits=AlarmLimits(5.86)).verdict is PASS
    limited = spending(spot, on_demand, limits=AlarmLimits(5.84))
    assert limited.verdict is FAIL
    assert "the limit is $5.84/h" in limited.evidence


def test_burn_rate_with_an_unknown_price_is_at_least() -> None:
    finding = spending(make_node(), make_node("odd-1", run=None, accelerator_type="v9-8"))
    assert finding.verdict is UNKNOWN
    assert "at least $1.35/h" in finding.evidence
    assert "no price is known for odd-1" in finding.evidence


def test_burn_rate_without_any_answer_is_unknown() -> None:
    finding = check_with("burn_rate", evidence_of(Store()))
    assert finding.verdict is UNKNOWN
    assert "an unknown rate" in finding.evidence
    assert spending().evidence.startswith("$0.00/h for 0 READY nodes")


def test_log_entries_suppressed() -> None:
    assert check_project("log_entries_suppressed").verdict is PASS
    assert check_project("log_entries_suppressed", store=Store()).verdict is UNKNOWN
    finding = check_project("log_entries_suppressed", suppressed_log_entries=1_500)
    assert finding.verdict is WARN
    assert "1,500" in finding.evidence


def failed_operation(operation_id: str = "op-1", **more: Any) -> Any:
    fields = {
        "state": OperationState.FAILED,
        "failure": Failure(ErrorClass.QUOTA, "Limit: 0", "ask", RetryPolicy.NEVER),
        "updated": ago(minutes=3),
        **more,
    }
    return make_progress(operation_id, **fields)


def after(*operations: Any, runs: tuple[Any, ...] = (), **more: Any) -> Any:
    store = healthy_store()
    for operation in operations:
        report_progress(store, operation)
    read_runs(store, *runs)
    return check_with("operation_failed", evidence(store=store, runs=runs, **more))


def test_operation_failed() -> None:
    assert after().verdict is NOT_APPLICABLE
    assert after(make_progress()).verdict is PASS
    finding = after(failed_operation(), failed_operation("op-2", updated=ago(hours=1)))
    assert finding.verdict is FAIL
    assert finding.evidence == "launch demo 3 min ago: QUOTA: Limit: 0; and 1 more"
    assert (finding.advice, finding.action) == ("ask", "launch")


def test_operation_of_unknown_outcome_is_a_warning() -> None:
    unknown = failed_operation(state=OperationState.UNKNOWN, failure=None)
    assert after(unknown).verdict is WARN


def test_operation_that_its_run_shows_is_not_shown_twice() -> None:
    assert after(failed_operation(), runs=(make_run(),)).verdict is PASS
    delete = failed_operation(kind=OperationKind.DELETE)
    assert after(delete, runs=(make_run(),)).verdict is FAIL
    assert after(delete, subject="other").verdict is PASS
