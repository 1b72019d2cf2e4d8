"""Real trainer processes: many replicas, kill -9 in a loop, storage that turns against the run."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.storage_server import BUCKET, StorageServer
from tests.e2e.test_trainer_resume import Trainer
from tests.unit.trainer.jobs import write_digits

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.trains, pytest.mark.timeout(240)]


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
    assert results[1]["eval_loss"] < 2.25


def test_killed_at_random_moments_it_ends_with_the_same_weights(tmp_path: Path) -> None:
    """Streamed files, a checkpoint every few steps, and SIGKILL whenever."""
    files = write_digits(tmp_path / "data", files=4, each=100).split()
    flags = [*files, "--memory_mb", "0", "--steps", "60", "--batch_size", "16"]
    flags += ["--checkpoint_every", "4", "--call_seconds", "0.02"]
    straight = Trainer(tmp_path / "straight", *flags)
    moments = random.Random(5)
    model_dir = tmp_path / "run"
    for _ in range(2):
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
    tmp_path: Path,
) -> None:
    storage = StorageServer(tmp_path)
    flags = ["--steps", "100000", "--checkpoint_every", "10", "--batch_size", "16"]
    trainer = Trainer(
        f"gs://{BUCKET}/runs/demo",
        *flags,
        output=tmp_path / "events",
        env={**os.environ, **storage.environment},
    )
    try:
        trainer.wait_for("checkpoint", 10)
        storage.refuse_writes()
        assert trainer.end() == 70, trainer.output.read_text()
        names = [name for name in storage if "/checkpoints/ckpt-" in name]
    finally:
        storage.close()
    (error,) = trainer.events("error")
    assert error["class"] == "BUCKET_ACCESS"
    assert "was not saved" in error["detail"]
    assert "objectAdmin" in error["hint"]
    saved = trainer.events("checkpoint")[-1]["step"]
    for ending in ("index", "data-00000-of-00001", "json"):
        assert any(name.endswith(f"ckpt-{saved}.{ending}") for name in names)
