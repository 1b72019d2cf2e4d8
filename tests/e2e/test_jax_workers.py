"""The JAX recipe as real processes: workers of a slice, by themselves and on emulated nodes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.storage_server import BUCKET, StorageServer
from tests.unit.trainer.jax_jobs import run_jax_job
from tests.unit.trainer.jobs import write_digits
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import ServedEmulator

pytestmark = [pytest.mark.trains, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).parents[2]
FLAGS = ("--tpu", "none", "--batch_size", "32", "--seed", "7", "--call_seconds", "0.05")
Event = dict[str, Any]


class Slice:
    """The trainer's processes on all workers of a slice, or on the only one."""

    def __init__(self, model_dir: Path | str, *flags: str, workers: int = 1, output: Path) -> None:
        output.mkdir(parents=True, exist_ok=True)
        self.outputs = [output / f"{os.urandom(4).hex()}-{index}" for index in range(workers)]
        self.processes = []
        for index, path in enumerate(self.outputs):
            told = {
                "TPUDASH_WORKER": str(index),
                "TPUDASH_WORKERS": str(workers),
                "TPUDASH_COORDINATOR": "127.0.0.1",
            }
            command = [sys.executable, "-m", "trainer.jax_recipe", "--model_dir", str(model_dir)]
            with path.open("wb") as stdout:
                process = subprocess.Popen(
                    [*command, *FLAGS, *flags],
                    cwd=REPOSITORY,
                    env={**os.environ, **(told if workers > 1 else {})},
                    stdout=stdout,
                    stderr=subprocess.DEVNULL,
                )
            self.processes.append(process)

    def events(self, kind: str, worker: int = 0) -> list[Event]:
        """Return the events of a kind that a worker has told so far."""
        lines = self.outputs[worker].read_text().splitlines(keepends=True)
        parsed = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in parsed if event["event"] == kind]

    def wait_for(self, kind: str, step: int = 0) -> Event:
        """Wait for an event of worker 0 at or after a step."""

        def found() -> Event | None:
            assert self.processes[0].poll() is None, self.outputs[0].read_text()
            events = self.events(kind)
            return next((event for event in events if (event.get("step") or 0) >= step), None)

        return wait_until(found, within=90, what=f"{kind} at {step}", poll=0.01) or {}

    def end(self) -> list[int]:
        """Wait for the end of all and return their exit codes."""
        return [process.wait(120) for process in self.processes]

    def finish(self) -> Event:
        """Wait for a good end and return what worker 0 told of it."""
        codes = self.end()
        assert set(codes) == {0}, [path.read_text() for path in self.outputs]
        return self.events("finish")[0]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Any]:
    """Return a function that starts a slice, ended after the test."""
    begun: list[Slice] = []

    def start(model_dir: Path | str, *flags: str, workers: int = 1) -> Slice:
        begun.append(Slice(model_dir, *flags, workers=workers, output=tmp_path / "out"))
        return begun[-1]

    yield start
    for each in begun:
        for process in each.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.slow
def test_workers_stop_together_and_end_as_one_process_would(tmp_path: Path, begin: Any) -> None:
    """Held-out loss to 1 in 1,000: the workers' sums are added in another order."""
    flags = ("--steps", "150", "--checkpoint_every", "150")
    first = begin(tmp_path / "run", *flags, "--call_seconds", "0.01", workers=2)
    first.wait_for("step")
    first.processes[1].send_signal(signal.SIGTERM)
    assert first.end() == [75, 75]
    (preempt,), (other,) = first.events("preempt"), first.events("preempt", 1)
    assert preempt["step"] == other["step"] == first.events("checkpoint")[-1]["step"] < 150
    assert (preempt["reason"], other["reason"]) == (
        "another worker was asked to stop", "SIGTERM",
    )  # fmt: skip
    assert not first.events("step", 1), "steps are told once"

    second = begin(tmp_path / "run", *flags, workers=2)
    finish = second.finish()
    assert second.events("restore")[0]["step"] == preempt["step"]
    _, alone = run_jax_job(tmp_path / "alone", *FLAGS, steps=150, every=150)
    straight = alone["finish"][0]["metrics"]
    assert finish["metrics"]["eval_loss"] == pytest.approx(straight["eval_loss"], rel=1e-3)
    assert finish["metrics"]["eval_accuracy"] == pytest.approx(straight["eval_accuracy"], abs=0.003)
    assert straight["eval_loss"] < 1.5


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_weights(tmp_path: Path, begin: Any) -> None:
    flags = ("--steps", "120", "--checkpoint_every", "4")
    straight = begin(tmp_path / "straight", *flags).finish()
    moments = random.Random(11)
    for _ in range(3):
        life = begin(tmp_path / "run", *flags)
        restored = life.wait_for("restore")["step"]
        life.wait_for("checkpoint", min(112, restored + moments.randrange(4, 40)))
        # To hit in the middle of whatever is done then.
        signal.sigtimedwait([], moments.random() / 20)
        life.processes[0].kill()
        assert life.end() == [-signal.SIGKILL]
    last = begin(tmp_path / "run", *flags)
    assert last.finish()["weights_sha256"] == straight["weights_sha256"]
    assert last.events("restore")[0]["step"] > 0


@pytest.mark.slow
def test_slice_that_lost_a_worker_starts_again_and_ends_with_the_same_weights(
    tmp_path: Path, begin: Any
) -> None:
    flags = ("--steps", "60", "--checkpoint_every", "10")
    straight = begin(tmp_path / "straight", *flags, workers=4).finish()
    life = begin(tmp_path / "run", *flags, workers=4)
    life.wait_for("checkpoint", 20)
    life.processes[2].kill()
    codes = life.end()
    assert codes[2] == -signal.SIGKILL
    assert {codes[index] for index in (0, 1, 3)} == {75}
    assert "another worker is gone" in life.events("preempt")[0]["reason"]
    again = begin(tmp_path / "run", *flags, workers=4)
    assert again.finish()["weights_sha256"] == straight["weights_sha256"]
    assert again.events("restore")[0]["step"] >= 20


@pytest.mark.slow
def test_files_in_a_bucket_are_trained_on_as_local_ones(
    tmp_path: Path, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = write_digits(tmp_path / "data", files=3, each=40).split()
    local = begin(tmp_path / "local", *flags, "--steps", "9").finish()
    storage = StorageServer(tmp_path)
    for name, value in {**storage.environment, "TMPDIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    try:
        for path in (tmp_path / "data").iterdir():
            storage[f"data/{path.name}"] = path.read_bytes()
        there = [flag.replace(str(tmp_path), f"gs://{BUCKET}") for flag in flags]
        remote = begin(tmp_path / "remote", *there, "--steps", "9", workers=2).finish()
        missing = begin(tmp_path / "no", *there, "--train_files", f"gs://{BUCKET}/none-*")
        assert missing.end() == [66]
    finally:
        storage.close()
    assert remote["metrics"]["eval_loss"] == pytest.approx(local["metrics"]["eval_loss"], rel=1e-3)


@pytest.mark.slow
def test_run_in_a_bucket_resumes_past_a_damaged_checkpoint(
    tmp_path: Path, begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = StorageServer(tmp_path)
    for name, value in storage.environment.items():
        monkeypatch.setenv(name, value)
    url = f"gs://{BUCKET}/runs/demo"
    try:
        begin(url, "--steps", "30", "--checkpoint_every", "10").finish()
        data = next(name for name in storage if "ckpt-30/d/" in name)
        storage[data] = storage[data][:100]
        second = begin(url, "--steps", "40", "--checkpoint_every", "10")
        finish = second.finish()
        storage.refuse_writes()
        third = begin(url, "--steps", "50", "--checkpoint_every", "10")
        assert third.end() == [70]
        names = set(storage)
    finally:
        storage.close()
    (restore,) = second.events("restore")
    assert (restore["step"], restore["quarantined"]) == (20, ["ckpt-30"])
    assert finish["export"] == f"{url}/export/40"
    assert "runs/demo/quarantine/ckpt-30/ckpt-30.json" in names
    assert {"runs/demo/checkpoints/ckpt-40.json", "runs/demo/export/40/model.json"} <= names
    assert third.events("error")[0]["class"] == "BUCKET_ACCESS"


def launch(served: ServedEmulator, name: str, kind: str, zone: str, steps: int) -> None:
    served.terminal.items(
        "launch", name, "--recipe", "jax", "--accelerator", kind, "--zone", zone,
        "--bucket", served.bucket, "--steps", str(steps), "--checkpoint-every", "10",
        "--batch-size", "64", "--seed", "7", "--yes",
    )  # fmt: skip


def follow(served: ServedEmulator, name: str, kind: str, zone: str, workers: int) -> None:
    """Launch, preempt in the middle, resume, and finish as if nothing had happened."""
    steps, terminal = 120, served.terminal
    launch(served, name, kind, zone, steps)
    wait_until(
        lambda: (terminal.the_run(name)["checkpoint_step"] or 0) >= 10, within=120, what="step 10"
    )
    preempted = terminal.run("emulator", "preempt", f"{name}-1", "--notice", "10s")
    assert preempted.returncode == 0, preempted.stderr
    run = terminal.the_run(name)
    assert (run["state"], run["recipe"]) == ("PREEMPTED", "jax-mnist")
    assert run["checkpoint_step"] == run["step"] < steps
    terminal.items("resume", name, "--yes", "--wait", timeout=120)
    wait_until(
        lambda: terminal.the_run(name)["state"] == "FINISHED", within=150, what="the end of the run"
    )
    run = terminal.the_run(name)
    assert (run["step"], run["steps_lost"], len(run["attempts"])) == (steps, 0, 2)
    assert run["cost_accrued_usd"] > 0
    assert {each["workers"] for each in run["attempts"]} == {workers}
    entries = terminal.items("logs", name, "--limit", "2000")
    assert {entry["worker"] for entry in entries} == {str(index) for index in range(workers)}
    tellers = {entry["worker"] for entry in entries if entry["event"] in ("step", "checkpoint")}
    assert tellers == {"0"}, "each step is told by one worker"


def test_slice_on_the_emulator_is_preempted_and_ends_with_the_same_weights(
    served: ServedEmulator, tmp_path: Path, begin: Any
) -> None:
    follow(served, "pair", "v4-16", "us-central2-b", workers=2)
    flags = ("--steps", "120", "--checkpoint_every", "120", "--batch_size", "64")
    straight = begin(tmp_path / "straight", *flags, workers=2).finish()
    run = served.terminal.the_run("pair")
    assert run["final_metrics"]["weights_sha256"] == straight["weights_sha256"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "zone", "workers"), [("v2-8", "us-central1-b", 1), ("v4-32", "us-central2-b", 4)]
)
def test_one_host_and_four_on_the_emulator(
    served: ServedEmulator, kind: str, zone: str, workers: int
) -> None:
    follow(served, "demo", kind, zone, workers)
