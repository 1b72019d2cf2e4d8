"""Checks of nodes, each with what passes, what fails, what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    list_nodes,
    make_attempt,
    make_node,
    make_run,
    make_spec,
    report_source,
)
from tests.unit.diagnostics.cases import ago, check_node, evidence, healthy_store
from tpudash.diagnostics.checks import node_healthy
from tpudash.domain.finding import Verdict
from tpudash.domain.node import Scheduling, Symptom
from tpudash.domain.run import RunResult, RunState
from tpudash.store.snapshot import SourceState

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("node", "verdict", "words"),
    [
        (make_node(), PASS, "READY, HEALTHY"),
        (make_node(health=None), PASS, "gives no health"),
        (make_node(health="HEALTH_UNSPECIFIED"), PASS, "READY"),
        (make_node(health="UNHEALTHY_TENSORFLOW"), FAIL, "UNHEALTHY_TENSORFLOW"),
        (make_node(health="TIMEOUT", health_description="no ping"), FAIL, "TIMEOUT: no ping"),
        (make_node(health="UNHEALTHY_MAINTENANCE"), WARN, "UNHEALTHY_MAINTENANCE"),
        (make_node(health="NEW_HEALTH"), FAIL, "NEW_HEALTH"),
        (
            make_node(symptoms=(Symptom("HBM_OUT_OF_MEMORY", "8.4G of 8.0G", "3"),)),
            WARN,
            "HBM_OUT_OF_MEMORY on worker 3 (8.4G of 8.0G)",
        ),
        (make_node("demo-1", "UNKNOWN"), UNKNOWN, "UNKNOWN"),
        (make_node("demo-1", "BRAND_NEW_STATE"), UNKNOWN, "BRAND_NEW_STATE"),
        (make_node("demo-1", "CREATING"), WARN, "CREATING for 2 h"),
        (make_node("demo-1", "PREEMPTED"), NOT_APPLICABLE, "PREEMPTED"),
        (make_node("demo-1", "STOPPED"), NOT_APPLICABLE, "STOPPED"),
    ],
)
def test_node_healthy(node: Any, verdict: Verdict, words: str) -> None:
    finding = check_node("node_healthy", node)
    assert finding.verdict is verdict
    assert words in finding.evidence
    assert finding.subject == "demo-1"


def test_a_node_in_change_for_a_short_time_is_not_judged() -> None:
    store = healthy_store()
    node = make_node("demo-1", "REPAIRING")
    list_nodes(store, node, at=ago(minutes=5))
    given = evidence(node, store=store).about_node(node)
    finding = node_healthy.check(given)
    assert finding.verdict is NOT_APPLICABLE
    assert "REPAIRING for 5 min" in finding.evidence


def test_a_finding_is_as_old_as_its_source() -> None:
    assert check_node("node_healthy", make_node()).as_of == NOW - timedelta(seconds=3)


@pytest.mark.parametrize(
    ("runtime", "kind", "verdict", "words"),
    [
        ("tpu-vm-tf-2.18.0-pjrt", "v2-8", PASS, "fits"),
        ("tpu-vm-tf-2.18.0-pjrt-v5p-and-below", "v3-8", PASS, "fits"),
        ("tpu-vm-tf-2.18.0-pod-pjrt", "v2-32", PASS, "fits"),
        ("tpu-ubuntu2204-base", "v4-8", PASS, "fits"),
        ("v2-alpha-tpuv6e", "v6e-8", PASS, "fits"),
        ("tpu-vm-tf-2.18.0-pjrt", "v2-32", FAIL, "4 hosts, and a -pod image is needed"),
        ("tpu-vm-tf-2.18.0-pod-pjrt", "v2-8", FAIL, "-pod images are for slices"),
        ("tpu-vm-tf-2.18.0-pjrt-v5e-and-v6", "v2-8", FAIL, "v5e-and-v6"),
        ("tpu-vm-tf-2.10.0-v4", "v2-8", FAIL, "made for v4"),
        ("v2-alpha-tpuv5-lite", "v5p-8", FAIL, "made for v5e"),
        ("something-new", "v2-8", UNKNOWN, "something-new is not known"),
        ("", "v2-8", UNKNOWN, "not known"),
        ("tpu-vm-tf-2.18.0-pjrt", "v9-8", UNKNOWN, "v9-8 is not known"),
    ],
)
def test_runtime_fits(runtime: str, kind: str, verdict: Verdict, words: str) -> None:
    node = make_node(runtime_version=runtime, accelerator_type=kind)
    finding = check_node("runtime_fits", node)
    assert finding.verdict is verdict
    assert words in finding.evidence


def test_runtime_of_a_dead_node_is_no_question() -> None:
    node = make_node("demo-1", "PREEMPTED", runtime_version="v2-alpha-tpuv6e")
    assert check_node("runtime_fits", node).verdict is NOT_APPLICABLE


def test_node_without_run() -> None:
    stray = make_node(run=None, scheduling=Scheduling.ON_DEMAND)
    finding = check_node("node_without_run", stray)
    assert finding.verdict is WARN
    assert "no run's label; $4.50/h, $9.00 so far" in finding.evidence
    assert finding.action == "delete"
    assert check_node("node_without_run", make_node(), runs=(make_run(),)).verdict is PASS
    dead = make_node("demo-1", "PREEMPTED", run=None)
    assert check_node("node_without_run", dead).verdict is NOT_APPLICABLE


def test_node_whose_run_has_no_record() -> None:
    assert check_node("node_without_run", make_node()).verdict is WARN
    young = make_node(create_time=ago(minutes=3))
    assert check_node("node_without_run", young).verdict is NOT_APPLICABLE
    store = healthy_store()
    report_source(store, "runs", SourceState.FAILING)
    assert check_node("node_without_run", make_node(), store=store).verdict is UNKNOWN


def test_a_stray_of_unknown_price_costs_an_unknown_amount() -> None:
    finding = check_node("node_without_run", make_node(run=None, accelerator_type="v9-8"))
    assert "an unknown rate, an unknown amount so far" in finding.evidence


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (RunState.TRAINING, PASS),
        (RunState.RESUMING, PASS),
        (RunState.FINISHED, WARN),
        (RunState.FAILED, WARN),
        (RunState.DELETED, WARN),
    ],
)
def test_node_idle(state: RunState, verdict: Verdict) -> None:
    run = make_run(state=state, attempts=(make_attempt(ended=ago(minutes=40)),))
    finding = check_node("node_idle", make_node(), runs=(run,))
    assert finding.verdict is verdict
    if verdict is WARN:
        assert "40 min idle, $0.90 wasted, $1.35/h now" in finding.evidence
        assert finding.action == "delete"


def test_node_idle_since_the_result_or_the_last_word() -> None:
    result = RunResult(run="demo", attempt=1, finished=ago(hours=1), step=600)
    run = make_run(state=RunState.FINISHED, result=result)
    assert "$1.35 wasted" in check_node("node_idle", make_node(), runs=(run,)).evidence
    silent = make_run(state=RunState.FAILED, last_heard=ago(hours=2), attempts=())
    assert "$2.70 wasted" in check_node("node_idle", make_node(), runs=(silent,)).evidence
    unheard = make_run(state=RunState.FAILED, last_heard=None, attempts=())
    assert "FAILED: $1.35/h now" in check_node("node_idle", make_node(), runs=(unheard,)).evidence


def test_node_idle_because_the_run_went_on_elsewhere() -> None:
    first = make_attempt(1, state="PREEMPTED", ended=ago(hours=1))
    run = make_run(attempts=(first, make_attempt(2)))
    finding = check_node("node_idle", make_node("demo-1"), runs=(run,))
    assert finding.verdict is WARN
    assert "went on on another node" in finding.evidence
    assert check_node("node_idle", make_node("demo-2"), runs=(run,)).verdict is PASS


def test_node_idle_does_not_judge_what_it_can_not_see() -> None:
    just = make_run(state=RunState.FINISHED, attempts=(make_attempt(ended=ago(seconds=20)),))
    assert check_node("node_idle", make_node(), runs=(just,)).verdict is NOT_APPLICABLE
    assert check_node("node_idle", make_node()).verdict is NOT_APPLICABLE
    stopped = make_node("demo-1", "STOPPED")
    assert check_node("node_idle", stopped, runs=(make_run(),)).verdict is NOT_APPLICABLE


@pytest.mark.parametrize(
    ("node", "verdict", "words"),
    [
        (make_node(), PASS, "READY"),
        (make_node("demo-1", "PREEMPTED"), WARN, "v2-8 holds quota for 4 chips"),
        (make_node("demo-1", "TERMINATED"), WARN, "TERMINATED and still listed"),
        (make_node("demo-1", "PREEMPTED", accelerator_type="v9-8"), WARN, "for its chips"),
    ],
)
def test_dead_node_listed(node: Any, verdict: Verdict, words: str) -> None:
    finding = check_node("dead_node_listed", node, runs=(make_run(spec=make_spec()),))
    assert finding.verdict is verdict
    assert words in finding.evidence
    assert (finding.action == "delete") is (verdict is WARN)
