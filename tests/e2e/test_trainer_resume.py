"""Real trainer processes: interrupted at bad moments, a run ends with the very same weights."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.storage_server import BUCKET, StorageServer
from tests.waiting import wait_until

pytestmark = [pytest.mark.trains, pytest.mark.timeout(240)]

REPOSITORY = Path(__file__).parents[2]
STEPS = 300
EVERY = 40
Event = dict[str, Any]


class Trainer:
    """A trainer process whose events go to a file."""

    def __init__(
        self, model_dir: Path | str, *arguments: str, output: Path | None = None, **popen: Any
    ) -> None:
        self.output = output or Path(f"{model_dir}.{os.urandom(4).hex()}.events")
        command = [sys.executable, "-m", "trainer", "--model_dir", str(model_dir), "--tpu", "none"]
        command += f"--steps {STEPS} --batch_size 32 --seed 7 --checkpoint_every {EVERY}".split()
        with self.output.open("wb") as stdout:
            self.process = subprocess.Popen(
                [*command, "--call_seconds", "0.1", *arguments],
                cwd=REPOSITORY,
                stdout=stdout,
                stderr=subprocess.DEVNULL,
                **popen,
            )

    def events(self, kind: str) -> list[Event]:
        """Return the events of a kind so far."""
        lines = self.output.read_text().splitlines(keepends=True)
        parsed = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in parsed if event["event"] == kind]

    def wait_for(self, kind: str, step: int = 0) -> Event:
        """Wait for an event of a kind at or after a step."""

        def found() -> Event | None:
            events = self.events(kind)
            return next((event for event in events if (event.get("step") or 0) >= step), None)

        return wait_until(found, within=90, what=f"{kind} at {step}", poll=0.01) or {}

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        return self.process.wait(90)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Event]:
    """Return the folder of a run that nothing interrupted, and its `finish` event."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    trainer = Trainer(folder)
    assert trainer.end() == 0, trainer.output.read_text()
    return folder, trainer.events("finish")[0]


def small_files() -> None:
    """Let the process write no file as large as a checkpoint, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))


@pytest.mark.slow
def test_interrupted_run_ends_with_the_same_weights(
    tmp_path: Path, straight: tuple[Path, Event]
) -> None:
    """SIGTERM, a full disk, kill -9, the end of stdin, each in the middle; then to the end."""
    model_dir = tmp_path / "run"
    first = Trainer(model_dir)
    first.wait_for("step", 10)
    first.process.send_signal(signal.SIGTERM)
    assert first.end() == 75
    (preempt,) = first.events("preempt")
    assert first.events("checkpoint")[-1]["step"] == preempt["step"] < STEPS

    limited = Trainer(model_dir, preexec_fn=small_files)
    assert limited.end() == 70
    (error,) = limited.events("error")
    assert error["class"] == "BUCKET_ACCESS"
    assert "was not saved" in error["detail"]

    second = Trainer(model_dir, "--call_seconds", "0.02")
    assert second.wait_for("restore")["step"] == preempt["step"]
    saved = second.wait_for("checkpoint", preempt["step"] + 1)["step"]
    second.process.kill()
    assert second.end() == -signal.SIGKILL
    seen = max(event["step"] for event in second.events("step"))

    third = Trainer(model_dir, "--stop_on_stdin_eof", stdin=subprocess.PIPE)
    restore = third.wait_for("restore")
    assert restore["step"] >= saved
    assert restore["step"] % EVERY == 0
    assert restore["steps_lost"] == max(0, seen - restore["step"]) <= EVERY
    third.wait_for("step")
    assert third.process.stdin is not None
    third.process.stdin.close()
    assert third.end() == 75

    last = Trainer(model_dir)
    assert last.end() == 0
    (finish,) = last.events("finish")
    assert finish["step"] == STEPS
    assert finish["weights_sha256"] == straight[1]["weights_sha256"]
    assert finish["metrics"] == straight[1]["metrics"]
    assert finish["metrics"]["eval_accuracy"] > 0.8
    exported = {path.name for path in Path(finish["export"]).iterdir()}
    assert {"saved_model.pb", "variables"} <= exported


@pytest.mark.slow
def test_replicas_continue_what_one_began(tmp_path: Path, straight: tuple[Path, Event]) -> None:
    """Several replicas run through the same code path as the cores of a TPU."""
    model_dir = tmp_path / "run"
    shutil.copytree(straight[0], model_dir)
    several = Trainer(model_dir, "--steps", str(STEPS + 20), "--cpu_replicas", "2")
    assert several.end() == 0, several.output.read_text()
    assert several.events("restore")[0]["step"] == STEPS
    assert several.events("step")[-1]["step"] == STEPS + 20
    accuracy = several.events("eval")[0]["accuracy"]
    assert accuracy == pytest.approx(straight[1]["metrics"]["eval_accuracy"], abs=0.03)


@pytest.mark.slow
def test_run_in_a_bucket_resumes(tmp_path: Path) -> None:
    """TensorFlow's own gs:// code, from first step to export, with a damaged checkpoint between."""
    storage = StorageServer(tmp_path)
    environment = {**os.environ, **storage.environment}

    def train(steps: int) -> Trainer:
        trainer = Trainer(
            f"gs://{BUCKET}/runs/demo",
            *("--steps", str(steps), "--checkpoint_every", "10"),
            output=tmp_path / f"{steps}.events",
            env=environment,
        )
        assert trainer.end() == 0, trainer.output.read_text()
        return trainer

    try:
        train(30)
        data = next(name for name in storage if "ckpt-30.data" in name)
        storage[data] = storage[data][:1000]
        (restore,) = train(40).events("restore")
        names = set(storage)
    finally:
        storage.close()
    assert (restore["step"], restore["quarantined"]) == (20, ["ckpt-30"])
    kept = {name for name in names if name.endswith(".index") and "/checkpoints/" in name}
    assert kept == {f"runs/demo/checkpoints/ckpt-{step}.index" for step in (20, 30, 40)}
    assert "runs/demo/quarantine/ckpt-30/ckpt-30.index" in names
    assert "runs/demo/export/40/saved_model.pb" in names
