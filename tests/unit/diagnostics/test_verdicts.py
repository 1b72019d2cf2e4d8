"""Every check in every verdict that it can give; a check without its cases fails here by itself."""

from __future__ import annotations

import ast
import importlib
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.unit.diagnostics.cases import ago
from tests.unit.diagnostics.verdict_table import CASES
from tpudash.diagnostics import cause_check, worker_probe
from tpudash.diagnostics.check import Scope
from tpudash.diagnostics.checklist import load_checks
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.probe import ProbeResult
from tpudash.store.snapshot import SourceState, SourceStatus

if TYPE_CHECKING:
    from tpudash.diagnostics.check import Check
    from tpudash.diagnostics.evidence import Evidence

CHECKS: Final = {check.about.check_id: check for check in load_checks()}
GIVES: Final = {
    "passed": Verdict.PASS,
    "warned": Verdict.WARN,
    "failed": Verdict.FAIL,
    "unknown": Verdict.UNKNOWN,
    "unanswered": Verdict.UNKNOWN,
    "not_applicable": Verdict.NOT_APPLICABLE,
}
SHARED: Final = {
    "judge_causes": (
        cause_check.judge_causes,
        cause_check.told,
        cause_check.without_attempt,
    ),
    "without_attempt": (cause_check.without_attempt,),
    "told": (cause_check.told,),
    "no_question": (worker_probe.no_question,),
}
"""Functions that give verdicts in the name of several checks."""
ALL: Final = [(name, verdict) for name, cases in CASES.items() for verdict in cases]


def verdicts_in(source: str) -> set[Verdict]:
    """Return the verdicts that a piece of code can give, by the methods that it names."""
    found = set()
    for item in ast.walk(ast.parse(source)):
        if isinstance(item, ast.Attribute) and item.attr in GIVES:
            found.add(GIVES[item.attr])
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name):
            for shared in SHARED.get(item.func.id, ()):
                found |= verdicts_in(inspect.getsource(shared))
    return found


def run(name: str, given: Evidence) -> Finding:
    return CHECKS[name].function(given)


@pytest.mark.parametrize("name", CHECKS)
def test_every_verdict_of_a_check_has_a_case(name: str) -> None:
    module = importlib.import_module(f"tpudash.diagnostics.checks.{name.replace('-', '_')}")
    can = verdicts_in(inspect.getsource(module))
    assert can == set(CASES.get(name, {})), "the table in verdict_table.py must have them all"
    assert Verdict.PASS in can
    assert can & {Verdict.WARN, Verdict.FAIL}


@pytest.mark.parametrize(("name", "verdict"), ALL, ids=[f"{name}-{one}" for name, one in ALL])
def test_the_verdict(name: str, verdict: Verdict) -> None:
    found = run(name, CASES[name][verdict]())
    assert (found.check_id, found.verdict) == (name, verdict), found.evidence
    assert found.evidence
    assert found.why.endswith(".")
    assert found.group
    if verdict in {Verdict.WARN, Verdict.FAIL}:
        assert found.advice
    if verdict is Verdict.PASS:
        assert found.as_of is not None


def doubtful(given: Evidence, check: Check) -> Evidence:
    """The same evidence, when nobody has answered for it since."""
    about = check.about
    failed: dict[Any, Any] = {
        key: ProbeResult(ago(minutes=1), failure="no answer within 8 s") for key in given.probes
    }
    status = SourceStatus(about.source, SourceState.FAILING, ago(hours=1), title="denied")
    sources = {**given.snapshot.sources, about.source: status}
    return replace(given, probes=failed, snapshot=replace(given.snapshot, sources=sources))


@pytest.mark.parametrize("name", CHECKS)
def test_what_nobody_answers_for_is_never_a_pass(name: str) -> None:
    check = CHECKS[name]
    given = CASES[name][Verdict.PASS]()
    assert check.function(given).verdict is Verdict.PASS
    found = check.function(doubtful(given, check))
    assert found.verdict is not Verdict.PASS, found.evidence
    if name != "api-answers":
        assert found.verdict is Verdict.UNKNOWN, found.evidence


NODE_CHECKS: Final = [name for name, check in CHECKS.items() if check.about.scope is Scope.NODE]


@pytest.mark.parametrize("name", NODE_CHECKS)
def test_a_node_of_a_silent_zone_never_passes(name: str) -> None:
    given = CASES[name][Verdict.PASS]()
    assert given.node is not None
    silent = {given.node.zone: ago(minutes=9)}
    far = replace(given, probes={}, snapshot=replace(given.snapshot, unreachable=silent))
    assert run(name, far).verdict is not Verdict.PASS


def test_the_table_names_no_check_that_is_gone() -> None:
    assert set(CASES) == set(CHECKS)
