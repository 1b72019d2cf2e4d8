"""Checks of how well a run uses its chips: device, input, batch and bucket."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tui.factories import (
    make_attempt,
    make_node,
    make_run,
    make_spec,
)
from tests.unit.diagnostics.cases import (
    ago,
    check_run,
    event,
    with_logs,
)
from tpudash.domain.finding import Verdict
from tpudash.domain.probe import ProbeKey, ProbeKind, ProbeResult
from tpudash.domain.run import Recipe, RunState

PASS, WARN, FAIL = Verdict.PASS, Verdict.WARN, Verdict.FAIL
UNKNOWN, NOT_APPLICABLE = Verdict.UNKNOWN, Verdict.NOT_APPLICABLE
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
