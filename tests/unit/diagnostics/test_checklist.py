"""The checklist as a whole: which checks there are, on what they run, in which order."""

from __future__ import annotations

import logging
import pkgutil
from dataclasses import replace
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    add_logs,
    list_nodes,
    make_attempt,
    make_entry,
    make_node,
    make_run,
    make_spec,
    make_world,
    read_runs,
)
from tests.unit.diagnostics.cases import BOOK, ago, event, evidence, healthy_store
from tpudash.diagnostics import checks
from tpudash.diagnostics.check import About, Check, Scope
from tpudash.diagnostics.checklist import SEVERITY, load_checks, run_checklist
from tpudash.diagnostics.evidence import ACTIONS, NEWEST_ENTRIES, Evidence, gather
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.run import RunState


def about(check_id: str = "probe", scope: Scope = Scope.NODE, rank: int = 50) -> About:
    return About(check_id, check_id, scope, "why", rank)


def constant(verdict: Verdict, check_id: str = "probe", rank: int = 50) -> Check:
    """A check that always says the same."""
    here = about(check_id, Scope.PROJECT, rank)

    def check(evidence: Evidence) -> Finding:
        return replace(here.passed(evidence, "text"), verdict=verdict)

    return Check(here, check)


def test_every_module_is_a_check_with_an_id_of_its_own() -> None:
    names = {module.name.replace("_", "-") for module in pkgutil.iter_modules(checks.__path__)}
    loaded = [check.about for check in load_checks()]
    assert {one.check_id for one in loaded} == names
    assert len(loaded) == len(names) >= 40
    assert all(one.why.endswith(".") and one.title for one in loaded)


def test_rows_are_worst_first_and_then_by_likely_cause() -> None:
    given = [
        constant(Verdict.PASS, "a", 1),
        constant(Verdict.FAIL, "b", 60),
        constant(Verdict.NOT_APPLICABLE, "c", 1),
        constant(Verdict.WARN, "d", 1),
        constant(Verdict.FAIL, "e", 10),
        constant(Verdict.UNKNOWN, "f", 1),
    ]
    found = run_checklist(evidence(), given)
    assert [row.check_id for row in found] == ["e", "b", "d", "f", "a", "c"]


def test_a_check_that_raises_is_unknown_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(evidence: Evidence) -> Finding:
        raise KeyError("loss")

    with caplog.at_level(logging.ERROR):
        found = run_checklist(
            evidence(make_node()), [Check(about(), broken), constant(Verdict.PASS, "other")]
        )
    assert [row.verdict for row in found] == [Verdict.UNKNOWN, Verdict.PASS]
    assert "KeyError: 'loss'" in found[0].evidence
    assert found[0].subject == "demo-1"
    assert "check probe failed on demo-1" in caplog.text


def by_state(scope: Scope) -> Check:
    """A check that fails for PREEMPTED, passes for READY and has no question otherwise."""
    here = about(scope=scope)

    def check(evidence: Evidence) -> Finding:
        assert evidence.node is not None
        if evidence.node.state == "READY":
            return here.passed(evidence, "ready")
        if evidence.node.is_dead:
            return here.failed(evidence, "dead", advice="")
        return here.not_applicable(evidence, "changing")

    return Check(here, check)


def test_good_rows_are_put_together_and_bad_ones_kept_apart() -> None:
    nodes = (
        make_node("a-1"),
        make_node("b-1"),
        make_node("c-1"),
        make_node("d-1"),
        make_node("e-1", "PREEMPTED"),
        make_node("f-1", "PREEMPTED"),
        make_node("g-1", "CREATING"),
    )
    found = run_checklist(evidence(*nodes), [by_state(Scope.NODE)])
    assert [(row.verdict, row.subject) for row in found] == [
        (Verdict.FAIL, "e-1"),
        (Verdict.FAIL, "f-1"),
        (Verdict.PASS, "a-1, b-1, c-1 +1"),
    ]
    assert found[-1].evidence == "all 4: a-1: ready"
    apart = run_checklist(evidence(*nodes), [by_state(Scope.NODE)], join=False)
    assert len(apart) == len(nodes)


def test_without_any_node_a_check_of_nodes_has_no_question() -> None:
    (row,) = run_checklist(evidence(), [by_state(Scope.NODE)])
    assert row.verdict is Verdict.NOT_APPLICABLE
    assert row.evidence == "there is no node to check"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("demo", {"demo-1", "demo", "project"}),
        ("demo-1", {"demo-1", "demo", "project"}),
        ("projects/demo/locations/us-central1-b/nodes/demo-1", {"demo-1", "demo", "project"}),
        ("vision", {"vision-1", "vision", "project"}),
        ("stray", {"stray", "project"}),
        ("nobody", {"project"}),
    ],
)
def test_a_subject_narrows_the_list_to_its_node_and_run(subject: str, expected: set[str]) -> None:
    found = run_checklist(gather(make_world(), BOOK, NOW, subject=subject))
    assert {row.subject for row in found} == expected


def test_the_world_of_the_tests_gives_what_a_reader_expects_first() -> None:
    found = run_checklist(gather(make_world(), BOOK, NOW))
    order = [SEVERITY.index(row.verdict) for row in found]
    assert order == sorted(order)
    assert [(row.check_id, row.subject) for row in found[:4]] == [
        ("node-healthy", "stray"),
        ("run-preempted", "vision"),
        ("node-without-run", "stray"),
        ("dead-node-listed", "vision-1"),
    ]
    keys = [(row.check_id, row.subject, row.verdict) for row in found]
    assert len(keys) == len(set(keys))
    assert {row.action for row in found} <= ACTIONS | {None}


def test_an_action_that_is_not_there_is_not_named() -> None:
    found = run_checklist(gather(make_world(), BOOK, NOW, actions=frozenset({"pane-logs"})))
    assert {row.action for row in found} <= {"pane-logs", None}
    preempted = next(row for row in found if row.check_id == "run-preempted")
    assert preempted.command == "tpudash resume vision"


def test_runs_that_are_long_over_are_not_on_the_projects_list() -> None:
    spec = make_spec("old", created=ago(hours=30))
    old = make_run("old", RunState.FAILED, last_heard=ago(hours=25), attempts=(), spec=spec)
    new = make_run("new", RunState.FAILED, last_heard=ago(hours=1), attempts=())
    deleted = make_run("deleted", RunState.DELETED, last_heard=ago(hours=1))
    store = healthy_store()
    read_runs(store, old, new, deleted)
    everything = gather(store, BOOK, NOW)
    assert [run.name for run in everything.runs_in_question()] == ["new"]
    about_old = replace(everything, subject="old")
    assert [run.name for run in about_old.runs_in_question()] == ["old"]
    list_nodes(store, make_node("old-1", run="old"))
    assert "old" in {run.name for run in gather(store, BOOK, NOW).runs_in_question()}


def test_a_run_whose_node_could_just_not_be_made_is_on_the_list() -> None:
    failure = {"class": "PERMISSION", "detail": "denied", "hint": ""}
    spec = make_spec("new", created=ago(days=9), attempt_started=ago(minutes=1), failure=failure)
    store = healthy_store()
    read_runs(store, make_run("new", RunState.FAILED, last_heard=None, attempts=(), spec=spec))
    rows = run_checklist(gather(store, BOOK, NOW))
    assert (rows[0].check_id, rows[0].subject) == ("run-created", "new")
    assert rows[0].evidence.startswith("PERMISSION in us-central1-b: denied")
    unknown = {row.check_id for row in rows if row.verdict is Verdict.UNKNOWN}
    assert not unknown & {"out-of-memory", "device-free", "versions-agree", "error-line"}


def test_gathering_keeps_the_start_of_a_run_however_old() -> None:
    store = healthy_store()
    lines = [make_entry(at, f"line {at}") for at in range(NEWEST_ENTRIES + 10)]
    add_logs(store, event("start", -100, device={"kind": "TPU"}), *lines)
    given = gather(store, BOOK, NOW)
    assert len(given.logs) == NEWEST_ENTRIES + 1
    assert given.logs[0].event == "start"
    assert given.logs[-1].text == f"line {NEWEST_ENTRIES + 9}"


def test_evidence_of_a_node_and_a_run_holds_only_their_own_log() -> None:
    store = healthy_store()
    add_logs(
        store,
        make_entry(1, "mine", zone="us-central1-b"),
        make_entry(2, "elsewhere", zone="europe-west4-a"),
        make_entry(3, "other", node_id="other-1", run="other"),
    )
    given: Any = evidence(make_node(), runs=(make_run(),), store=store)
    assert [one.text for one in given.about_node(make_node()).logs] == ["mine"]
    assert [one.text for one in given.about_run(make_run()).logs] == ["mine", "elsewhere"]


def test_many_healthy_nodes_and_runs_take_no_more_rows_than_one() -> None:
    def rows_for(count: int) -> list[tuple[str, Verdict]]:
        store = healthy_store()
        names = [f"run{number}" for number in range(count)]
        list_nodes(store, *(make_node(f"{name}-1", run=name) for name in names))
        read_runs(store, *(make_run(name, attempts=(make_attempt(run=name),)) for name in names))
        found = run_checklist(gather(store, BOOK, NOW))
        return [(row.check_id, row.verdict) for row in found]

    assert rows_for(200) == rows_for(1)
