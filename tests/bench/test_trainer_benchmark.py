"""The whole benchmark, small; half a minute: `pytest tests/bench/test_trainer_benchmark.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_trainer_resume import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.trains, pytest.mark.timeout(240)]


def test_benchmark_measures_everything(tmp_path: Path) -> None:
    options = ["--examples", "2048", "--batch_size", "128", "--epochs", "2", "--tpu", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "benchmark", *options, "--folder", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for name in ("trainer", "plain_loop"):
        assert report[name]["examples_per_second"] > 0
        assert report[name]["peak_memory_bytes"] > 10**8
        assert report[name]["eval_accuracy"] > 0.3
    figures = report["trainer"]
    assert figures["step_time_p50_s"] <= figures["step_time_p95_s"] <= figures["step_time_p99_s"]
    assert 0 <= figures["input_wait_fraction"] <= 1
    assert figures["mfu"] is None, "nobody knows the peak of this CPU"
    assert report["reactions"]["restored_step"] >= 20
    reaction = report["reactions"]["preempted_to_stepping_s"]
    assert reaction > report["reactions"]["saved_and_ended_s"] > 0
    assert {goal["name"] for goal in report["goals"]} >= {"speed_ratio", "memory_ratio"}
    assert not list(tmp_path.iterdir()), "nothing is left behind"
