"""Alarms about models that are served: errors, latency, readiness, silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import NOW, make_node, make_run, make_spec
from tests.unit.diagnostics.cases import check_run, evidence
from tests.unit.diagnostics.verdict_cases import with_source
from tpudash.diagnostics.checks import endpoints_answer
from tpudash.domain.finding import Verdict
from tpudash.domain.run import Recipe, RunState
from tpudash.domain.serving import ServingFigures, ServingKind, ServingLimits
from tpudash.store.snapshot import ENDPOINTS, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence

GOOD = ServingFigures(
    ServingKind.RUN,
    "demo",
    NOW - timedelta(seconds=4),
    is_ready=True,
    requests_per_second=50.0,
    latency_p99_s=0.02,
    error_share=0.0,
)
SERVING = make_run(state=RunState.SERVING, step=None)


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, Verdict.PASS, "50.0 requests/s, p99 20.0 ms, 0.0% errors"),
        (
            {"error_share": 0.02, "errors_per_second": {"429": 1.0}},
            Verdict.FAIL,
            "2.0% errors (429)",
        ),
        ({"latency_p99_s": 0.3}, Verdict.FAIL, "p99 300 ms, the limit is 100 ms"),
        ({"is_ready": False, "state": "draining"}, Verdict.FAIL, "not ready (draining)"),
        ({"time": NOW - timedelta(minutes=3)}, Verdict.FAIL, "no figures for 180 s"),
        ({"requests_per_second": 0.0, "latency_p99_s": None}, Verdict.PASS, "0.0 requests/s"),
    ],
)
def test_a_run_that_serves_is_judged_by_its_newest_figures(
    changes: dict[str, Any], verdict: Verdict, words: str
) -> None:
    limits = {"serving": (replace(GOOD, **changes),), "serving_limits": ServingLimits(0.1, 0.01)}
    found = check_run("serving_answers", SERVING, make_node(), **limits)
    assert found.verdict is verdict
    assert words in found.evidence


def test_a_run_that_trains_is_not_asked_and_one_without_figures_is_unknown() -> None:
    assert check_run("serving_answers", make_run()).verdict is Verdict.NOT_APPLICABLE
    assert check_run("serving_answers", SERVING, make_node()).verdict is Verdict.UNKNOWN


def read(*figures: ServingFigures) -> Evidence:
    return evidence(store=with_source(ENDPOINTS, SourceState.OK), serving=figures)


def test_endpoints_that_fail_are_named_and_the_others_are_not() -> None:
    api = replace(GOOD, kind=ServingKind.ENDPOINT, name="api")
    gone = replace(api, name="gone", is_ready=False, problem="nothing answers there")
    found = endpoints_answer.check(read(api, gone, GOOD))
    assert found.verdict is Verdict.FAIL
    assert found.evidence == "gone: nothing answers there"
    assert endpoints_answer.check(read(api)).verdict is Verdict.PASS
    assert endpoints_answer.check(read(GOOD)).verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("name", ["self_check", "batch_fits", "tpu_address", "resumed_from_zero"])
def test_what_only_training_needs_is_not_asked_of_a_server(name: str) -> None:
    recipe = Recipe(name="tensorflow-serve", command=("python3", "-m", "trainer.serve"))
    run = replace(SERVING, spec=replace(make_spec("demo"), recipe=recipe))
    assert check_run(name, run, make_node()).verdict is Verdict.NOT_APPLICABLE
