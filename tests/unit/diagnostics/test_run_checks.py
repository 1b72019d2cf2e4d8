"""Checks of runs, each with what passes, what fails, what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.tui.factories import (
    NOW,
    add_logs,
    list_nodes,
    make_attempt,
    make_entry,
    make_node,
    make_progress,
    make_run,
    make_spec,
    report_progress,
)
from tests.unit.diagnostics.cases import (
    ago,
    check_run,
    check_with,
    event,
    evidence,
    healthy_store,
)
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy, Scope
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.operation import OperationState
from tpudash.domain.probe import ProbeKey, ProbeKind, ProbeResult
from tpudash.domain.run import Recipe, RunState

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


def with_logs(name: str, run: Any, *entries: Any, **more: Any) -> Finding:
    store = healthy_store()
    add_logs(store, *entries)
    return check_run(name, run, make_node(), store=store, **more)


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


# device_used


@pytest.mark.parametrize(
    ("device", "emulator", "verdict", "words"),
    [
        ({"kind": "TPU", "count": 8.0}, False, PASS, "8 TPU devices"),
        ({"kind": "TPU", "count": 4}, False, PASS, "4 TPU devices"),
        ({"kind": "TPU", "count": 2}, False, WARN, "2 TPU devices, but v2-8 has 4 chips"),
        ({"kind": "TPU"}, False, PASS, "on a TPU"),
        ({"kind": "CPU", "count": 1}, False, FAIL, "runs on the CPU while a TPU is paid for"),
        ({"kind": "CPU", "count": 1}, True, PASS, "emulated on CPU"),
        ({"kind": "ABACUS"}, False, UNKNOWN, "ABACUS"),
        ({}, False, UNKNOWN, "not at all"),
        (None, False, UNKNOWN, "not among the log entries"),
    ],
)
def test_device_used(device: Any, emulator: bool, verdict: Verdict, words: str) -> None:
    finding = with_logs("device_used", make_run(), event("start", device=device), emulator=emulator)
    assert finding.verdict is verdict
    assert words in finding.evidence


def test_device_used_names_the_rate_and_reads_only_its_own_attempt() -> None:
    cpu = event("start", device={"kind": "CPU", "count": 1})
    assert "$1.35/h" in with_logs("device_used", make_run(), cpu).evidence
    later = make_run(attempts=(make_attempt(1), make_attempt(2)))
    assert with_logs("device_used", later, cpu).verdict is UNKNOWN
    over = make_run(state=RunState.FINISHED)
    assert with_logs("device_used", over, cpu).verdict is NOT_APPLICABLE


# input_keeps_up


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.05, PASS), (0.19, PASS), (0.2, WARN), (0.49, WARN), (0.5, FAIL)]
)
def test_input_keeps_up(share: float, verdict: Verdict) -> None:
    steps = [event("step", at, step=100 + at, input_wait_fraction=share) for at in (-9, -8, -7)]
    finding = with_logs("input_keeps_up", make_run(), *steps)
    assert finding.verdict is verdict
    assert f"{share:.0%}" in finding.evidence


def test_input_is_unknown_without_steps_and_no_question_without_training() -> None:
    assert with_logs("input_keeps_up", make_run()).verdict is UNKNOWN
    over = make_run(state=RunState.FINISHED)
    assert with_logs("input_keeps_up", over).verdict is NOT_APPLICABLE


# batch_fits


def with_batch(*words: str, kind: str = "v2-8", state: RunState = RunState.TRAINING) -> Any:
    recipe = Recipe(name="tensorflow-mnist", command=("python3", "-m", "trainer", *words))
    return make_run(state=state, spec=make_spec(recipe=recipe, accelerator_type=kind))


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (with_batch("--batch_size", "1024"), PASS, "1,024 over 8 cores is 128 each"),
        (with_batch("--batch_size=256"), PASS, "32 each"),
        (with_batch("--batch_size", "8", "--batch_size=512"), PASS, "512 over"),
        (with_batch("--batch_size", "200"), WARN, "a multiple of 128"),
        (with_batch("--batch_size", "200", kind="v6e-8"), PASS, "25 each"),
        (with_batch("--batch_size", "100"), FAIL, "can't be split evenly over the 8 cores"),
        (with_batch("--batch_size", "0"), FAIL, "can't be split"),
        (with_batch("--batch_size", "many"), UNKNOWN, "no --batch_size"),
        (with_batch("--batch_size"), UNKNOWN, "no --batch_size"),
        (with_batch(), UNKNOWN, "no --batch_size"),
        (with_batch("--batch_size", "256", kind="v9-8"), UNKNOWN, "not known"),
        (
            with_batch("--batch_size", "100", state=RunState.FINISHED),
            NOT_APPLICABLE,
            "nothing is to be trained",
        ),
    ],
)
def test_batch_fits(run: Any, verdict: Verdict, words: str) -> None:
    finding = check_run("batch_fits", run)
    assert finding.verdict is verdict
    assert words in finding.evidence


@pytest.mark.parametrize(
    ("batch", "kind", "best"), [(200, "v2-8", 256), (100, "v2-8", 128), (1000, "v3-2048", 2048)]
)
def test_batch_advice_is_the_next_one_that_fits(batch: int, kind: str, best: int) -> None:
    finding = check_run("batch_fits", with_batch("--batch_size", str(batch), kind=kind))
    assert f"{best:,}" in finding.advice


def test_batch_that_the_trainer_says_comes_first() -> None:
    start = event("start", arguments={"batch_size": 1024.0})
    run = with_batch("--batch_size", "100")
    assert "1,024 over" in with_logs("batch_fits", run, start).evidence


# bucket_near


def in_bucket(bucket: str, zone: str = "us-central1-b") -> Any:
    return make_run(spec=make_spec(bucket=bucket, zone=zone))


@pytest.mark.parametrize(
    ("location", "zone", "verdict"),
    [
        ("US-CENTRAL1", "us-central1-b", PASS),
        ("us-central1", "us-central1-b", PASS),
        ("US", "us-central1-b", PASS),
        ("NAM4", "us-central1-b", PASS),
        ("EU", "europe-west4-a", PASS),
        ("EUR4", "europe-west4-a", PASS),
        ("ASIA", "asia-east1-c", PASS),
        ("US-EAST1", "us-central1-b", WARN),
        ("EU", "us-central1-b", WARN),
        ("NAM4", "us-west1-c", WARN),
        (None, "us-central1-b", UNKNOWN),
    ],
)
def test_bucket_near(location: str | None, zone: str, verdict: Verdict) -> None:
    run = in_bucket("gs://b/some/folder", zone)
    finding = check_run("bucket_near", run, probes=located(location))
    assert finding.verdict is verdict
    assert "gs://b" in (finding.evidence if location else finding.command or "")


def located(location: str | None) -> dict[ProbeKey, ProbeResult]:
    failure = "" if location else "no answer within 8 s"
    return {ProbeKey(ProbeKind.BUCKET, "gs://b"): ProbeResult(ago(minutes=1), location, failure)}


def test_bucket_near_goes_by_where_the_node_really_is() -> None:
    run = in_bucket("gs://b", "us-central1-b")
    node = make_node(zone="europe-west4-a")
    finding = check_run("bucket_near", run, node, probes=located("US"))
    assert finding.verdict is WARN
    assert "europe-west4" in finding.evidence


def test_a_folder_is_not_far_away() -> None:
    assert check_run("bucket_near", in_bucket("/tmp/b")).verdict is NOT_APPLICABLE


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
