"""Checks of runs, each with what passes, what fails, what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tui.factories import (
    make_attempt,
    make_entry,
    make_node,
    make_run,
    make_spec,
)
from tests.unit.diagnostics.cases import (
    ago,
    check_run,
    check_with,
    event,
    evidence,
    with_logs,
)
from tpudash.domain.finding import Verdict
from tpudash.domain.run import RunState

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE
RUN_CHECKS = [
    "batch_fits",
    "bucket_near",
    "checkpoints_sound",
    "device_used",
    "input_keeps_up",
    "log_entries_dropped",
    "resumed_from_zero",
    "run_created",
    "run_failed",
    "run_preempted",
    "run_stalled",
]


@pytest.mark.parametrize("name", RUN_CHECKS)
def test_without_a_run_there_is_no_question(name: str) -> None:
    assert check_with(name, evidence()).verdict is NOT_APPLICABLE


# run_preempted


def preempted(**more: Any) -> Any:
    record = make_attempt(state="PREEMPTED", started=ago(minutes=50), ended=ago(minutes=5))
    return make_run(state=RunState.PREEMPTED, **{"attempts": (record,), **more})


def test_run_preempted_says_from_where_it_can_go_on() -> None:
    finding = check_run("run_preempted", preempted(), make_node("demo-1", "PREEMPTED"))
    assert finding.verdict is FAIL
    # 450 steps took 45 minutes, so 50 take 5, which is $0.1125 at $1.35/h.
    assert finding.evidence == (
        "demo-1 was PREEMPTED 5 min ago, at step 450; the newest checkpoint is step 400, "
        "so 50 steps lost, about $0.11"
    )
    assert "step 400" in finding.advice
    assert finding.action == "resume"
    assert finding.command == "tpudash resume demo"


def test_run_preempted_although_its_record_says_training() -> None:
    finding = check_run("run_preempted", make_run(), make_node("demo-1", "TERMINATED"))
    assert finding.verdict is FAIL
    assert "was TERMINATED" in finding.evidence


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"checkpoint_step": None}, "no checkpoint is known"),
        ({"step": None}, "not known"),
        ({"checkpoint_step": 450}, "so 0 steps lost"),
    ],
)
def test_run_preempted_with_less_evidence(more: dict[str, Any], words: str) -> None:
    assert words in check_run("run_preempted", preempted(**more)).evidence


def test_run_preempted_without_a_checkpoint_begins_again() -> None:
    assert "step 0" in check_run("run_preempted", preempted(checkpoint_step=None)).advice


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (RunState.TRAINING, PASS),
        (RunState.RESUMING, NOT_APPLICABLE),
        (RunState.FINISHED, NOT_APPLICABLE),
    ],
)
def test_run_not_preempted(state: RunState, verdict: Verdict) -> None:
    assert check_run("run_preempted", make_run(state=state), make_node()).verdict is verdict


def test_an_old_dead_node_beside_a_new_one_is_no_preemption() -> None:
    nodes = (make_node("demo-1", "PREEMPTED"), make_node("demo-2"))
    assert check_run("run_preempted", make_run(), *nodes).verdict is PASS


# run_failed


def failed(error: dict[str, Any] | None = None, **more: Any) -> Any:
    record = make_attempt(state="FAILED", ended=ago(minutes=5), error=error, **more)
    return make_run(state=RunState.FAILED, attempts=(record,))


def test_run_failed_names_the_class_and_the_agents_own_hint() -> None:
    error = {"class": "BUCKET_ACCESS", "detail": "403 on gs://b", "hint": "grant objectAdmin"}
    finding = check_run("run_failed", failed(error))
    assert finding.verdict is FAIL
    assert finding.evidence == "BUCKET_ACCESS: 403 on gs://b (demo-1, 5 min ago)"
    assert finding.advice == "grant objectAdmin"
    assert finding.action == "pane-logs"


def test_run_out_of_chip_memory_is_offered_types_with_more() -> None:
    finding = check_run("run_failed", failed({"class": "HBM_OOM", "detail": "8.38G of 8.00G"}))
    assert "smaller batch" in finding.advice
    spec = make_spec(zone="europe-west4-a")
    record = make_attempt(state="FAILED", error={"class": "HBM_OOM", "detail": "full"})
    run = make_run(state=RunState.FAILED, attempts=(record,), spec=spec)
    assert "v3-8 (32 GiB per chip, $2.24/h)" in check_run("run_failed", run).advice


def test_run_failed_without_a_record_of_the_cause_reads_the_log() -> None:
    text = "Ran out of memory in memory space hbm. Used 8.38G of 8.00G hbm."
    finding = with_logs("run_failed", failed(), make_entry(-9, text, stream="stderr"))
    assert finding.evidence.startswith("HBM_OOM: ")
    by_event = with_logs(
        "run_failed",
        failed(),
        event("error", -5, **{"class": "VERSION", "detail": "libtpu is new"}),
    )
    assert by_event.evidence.startswith("VERSION: libtpu is new")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (failed(exit_code=70), "the trainer ended with code 70, a defect"),
        (failed(exit_code=3), "the trainer ended with code 3"),
        (failed(), "no reason was recorded"),
        (failed({"class": "NEW_CLASS", "detail": "odd"}), "UNCLASSIFIED: odd"),
    ],
)
def test_run_failed_for_a_reason_that_nobody_knows(run: Any, words: str) -> None:
    finding = check_run("run_failed", run)
    assert finding.verdict is FAIL
    assert words in finding.evidence
    assert finding.advice


def test_a_trainer_that_was_started_again_is_a_warning() -> None:
    record = make_attempt(restarts=2, error={"class": "CONNECT", "detail": "Socket closed"})
    finding = check_run("run_failed", make_run(attempts=(record,)))
    assert finding.verdict is WARN
    assert "started again 2 times on demo-1: Socket closed" in finding.evidence


def test_a_run_that_goes_on_has_not_failed() -> None:
    assert check_run("run_failed", make_run()).verdict is PASS
    never_began = make_run(state=RunState.FAILED, attempts=())
    assert check_run("run_failed", never_began).verdict is NOT_APPLICABLE


# run_stalled


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (make_run(), PASS, "heard 4 s ago, at step 450"),
        (make_run(last_heard=ago(minutes=6)), WARN, "last heard 6 min ago"),
        (make_run(state=RunState.STALLED, last_heard=ago(hours=1)), FAIL, "cost $1.35 since"),
        (make_run(last_heard=None), UNKNOWN, "never heard"),
        (make_run(state=RunState.PREEMPTED), NOT_APPLICABLE, "PREEMPTED"),
    ],
)
def test_run_stalled(run: Any, verdict: Verdict, words: str) -> None:
    finding = check_run("run_stalled", run, make_node())
    assert finding.verdict is verdict
    assert words in finding.evidence


# resumed_from_zero


def resumed(restored: int | None, state: RunState = RunState.TRAINING, **first: Any) -> Any:
    earlier = make_attempt(1, state="PREEMPTED", ended=ago(hours=1), **first)
    return make_run(state=state, attempts=(earlier, make_attempt(2, restored_step=restored)))


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (resumed(400), PASS, "went on from step 400"),
        (resumed(0), FAIL, "began at step 0 although step 400 had been saved"),
        (resumed(0, checkpoint_step=None), WARN, "step 450 was reached, but nothing saved"),
        (resumed(0, checkpoint_step=None, step=None), PASS, "nothing had been trained"),
        (resumed(None), UNKNOWN, "has not said yet"),
        (resumed(None, RunState.FAILED), NOT_APPLICABLE, "never got to restore"),
        (make_run(), NOT_APPLICABLE, "not resumed"),
    ],
)
def test_resumed_from_zero(run: Any, verdict: Verdict, words: str) -> None:
    finding = check_run("resumed_from_zero", run)
    assert finding.verdict is verdict
    assert words in finding.evidence


# checkpoints_sound, log_entries_dropped


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (make_run(), PASS, "step 400"),
        (make_run(attempts=(make_attempt(quarantined=("ckpt-300",)),)), WARN, "ckpt-300"),
        (make_run(checkpoint_step=None), NOT_APPLICABLE, "no checkpoint yet"),
        (make_run(attempts=()), NOT_APPLICABLE, "no attempt"),
    ],
)
def test_checkpoints_sound(run: Any, verdict: Verdict, words: str) -> None:
    finding = check_run("checkpoints_sound", run)
    assert finding.verdict is verdict
    assert words in finding.evidence


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (make_run(), PASS, "none"),
        (make_run(attempts=(make_attempt(log_entries_dropped=1200),)), WARN, "1,200 on demo-1"),
        (make_run(attempts=()), NOT_APPLICABLE, "no attempt"),
    ],
)
def test_log_entries_dropped(run: Any, verdict: Verdict, words: str) -> None:
    finding = check_run("log_entries_dropped", run)
    assert finding.verdict is verdict
    assert words in finding.evidence
