"""Real trainer processes: many replicas, kill -9 in a loop, storage that turns against the run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e import storage_server
from tests.e2e.storage_server import StorageServer
from tests.e2e.test_trainer_resume import REPOSITORY, Trainer
from tests.unit.trainer.jobs import write_digits

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.trains, pytest.mark.timeout(240)]


def test_eight_replicas_compute_what_one_does(tmp_path: Path) -> None:
    """Each step's loss to 4 digits and the held-out loss to 1 in 1,000: sums in another order."""
    flags = [
        "--steps",
        "12",
        "--batch_size",
        "64",
        "--precision",
        "float32",
        "--checkpoint_every",
        "12",
    ]
    flags += ["--clip_norm", "1", "--call_seconds", "0.01"]
    trainers = {
        count: Trainer(tmp_path / str(count), *flags, "--cpu_replicas", str(count))
        for count in (1, 8)
    }
    results: dict[int, dict[str, Any]] = {}
    for count, trainer in trainers.items():
        assert trainer.end() == 0, trainer.output.read_text()
        results[count] = trainer.events("finish")[0]["metrics"]
        first = trainer.events("step")[0]
        results[count]["first_loss"] = first["loss"]
    assert results[8]["first_loss"] == pytest.approx(results[1]["first_loss"], rel=1e-4)
    assert results[8]["eval_loss"] == pytest.approx(results[1]["eval_loss"], rel=1e-3)
    assert results[8]["eval_accuracy"] == pytest.approx(results[1]["eval_accuracy"], abs=0.005)
    assert results[1]["eval_loss"] < 2.2


def test_killed_at_random_moments_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    """Streamed files, a checkpoint every few steps, and SIGKILL whenever."""
    files = write_digits(tmp_path / "data", files=4, each=100).split()
    flags = [*files, "--memory_mb", "0", "--steps", "60", "--batch_size", "16"]
    flags += ["--checkpoint_every", "4", "--call_seconds", "0.02"]
    straight = Trainer(tmp_path / "straight", *flags)
    moments = random.Random(5)
    model_dir = tmp_path / "run"
    for _ in range(3):
        trainer = Trainer(model_dir, *flags)
        restored = trainer.wait_for("restore")["step"]
        trainer.wait_for("checkpoint", min(56, restored + moments.randrange(4, 16)))
        trainer.process.kill()
        assert trainer.end() == -signal.SIGKILL
    last = Trainer(model_dir, *flags)
    assert last.end() == 0, last.output.read_text()
    assert last.events("restore")[0]["step"] > 0
    assert straight.end() == 0, straight.output.read_text()
    digests = [each.events("finish")[0]["weights_sha256"] for each in (straight, last)]
    assert digests[0] == digests[1]


def test_bucket_that_turns_read_only_stops_the_run_and_keeps_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = StorageServer(tmp_path)
    handler = storage_server._Handler
    writes = {name: getattr(handler, name) for name in ("do_POST", "do_PUT", "do_DELETE")}
    read_only = [False]

    def guarded(name: str) -> Any:
        def write(self: Any) -> None:
            if read_only[0]:
                self._body()
                self._reply(403, {"error": {"code": 403, "message": "no storage.objects.create"}})
            else:
                writes[name](self)

        return write

    for name in writes:
        monkeypatch.setattr(handler, name, guarded(name))
    flags = ["--steps", "100000", "--checkpoint_every", "10", "--batch_size", "16"]
    trainer = Trainer(
        "gs://b/runs/demo",
        *flags,
        output=tmp_path / "events",
        env={**os.environ, **storage.environment},
    )
    try:
        trainer.wait_for("checkpoint", 10)
        read_only[0] = True
        assert trainer.end() == 70, trainer.output.read_text()
        names = [name for name in storage.objects if "/checkpoints/ckpt-" in name]
    finally:
        storage.close()
    (error,) = trainer.events("error")
    assert error["class"] == "BUCKET_ACCESS"
    assert "was not saved" in error["detail"]
    assert "objectAdmin" in error["hint"]
    saved = trainer.events("checkpoint")[-1]["step"]
    for ending in ("index", "data-00000-of-00001", "json"):
        assert any(name.endswith(f"ckpt-{saved}.{ending}") for name in names)


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
