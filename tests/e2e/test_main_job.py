"""The main job from a shell: launch, watch, preempt, resume, finish and delete a real run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import ServedEmulator, Terminal

STEPS = 600
LAUNCH = (
    "--accelerator", "v2-8", "--zone", "us-central1-b", "--spot", "--seed", "7",
    "--steps", str(STEPS), "--checkpoint-every", "40", "--batch-size", "256",
)  # fmt: skip


def launch(served: ServedEmulator, name: str, *more: str) -> None:
    items = served.terminal.items(
        "launch", name, *LAUNCH, "--bucket", served.bucket, *more, "--yes"
    )
    assert [item["name"] for item in items] == [name]


def wait_for_step(terminal: Terminal, name: str, step: int) -> None:
    wait_until(
        lambda: (terminal.the_run(name)["step"] or 0) >= step,
        within=90,
        what=f"run {name} reaches step {step}",
    )


@pytest.mark.trains
@pytest.mark.timeout(400)
def test_a_run_is_preempted_resumed_and_ends_as_if_nothing_had_happened(
    served: ServedEmulator,
) -> None:
    terminal = served.terminal
    launch(served, "calm")
    launch(served, "rough")
    wait_for_step(terminal, "rough", 1)
    (node,) = [item for item in terminal.items("nodes") if item["run"] == "rough"]
    assert node["name"] == "projects/demo/locations/us-central1-b/nodes/rough-1"
    assert (node["state"], node["accelerator_type"], node["chips"], node["hosts"]) == (
        "READY", "v2-8", 4, 1,
    )  # fmt: skip
    assert node["scheduling"] == "spot"
    assert node["cost_per_hour_usd"] == pytest.approx(1.35)
    assert node["cost_accrued_usd"] > 0
    log = terminal.run("logs", "rough")
    assert "loss" in log.stdout
    wait_for_step(terminal, "rough", 45)
    preempted = terminal.run("emulator", "preempt", "rough-1", "--notice", "10s")
    assert preempted.returncode == 0, preempted.stderr
    (node,) = [item for item in terminal.items("nodes") if item["run"] == "rough"]
    assert node["state"] == "PREEMPTED"
    assert node["cost_per_hour_usd"] == 0
    run = terminal.the_run("rough")
    assert run["state"] == "PREEMPTED"
    assert run["checkpoint_step"] == run["step"], "the notice was used to save a checkpoint"

    resumed = terminal.items("resume", "rough", "--yes", "--wait", timeout=120)
    assert resumed[0]["name"] == "rough"
    names = [item["name"].rsplit("/", 1)[1] for item in terminal.items("nodes")]
    assert "rough-1" not in names
    assert "rough-2" in names

    for name in ("calm", "rough"):
        wait_until(
            lambda name=name: terminal.the_run(name)["state"] == "FINISHED",  # type: ignore[misc]
            within=120,
            what=f"run {name} finishes",
        )
    calm, rough = terminal.the_run("calm"), terminal.the_run("rough")
    assert [len(run["attempts"]) for run in (calm, rough)] == [1, 2]
    assert (rough["steps_lost"], rough["step"]) == (0, STEPS)
    assert rough["attempts"][1]["restored_step"] == run["checkpoint_step"]
    assert calm["final_metrics"]["weights_sha256"] == rough["final_metrics"]["weights_sha256"]
    assert rough["cost_accrued_usd"] > 0

    deleted = terminal.run("delete", "rough", "--yes", "--wait", "--json", timeout=60)
    assert deleted.returncode == 0, deleted.stderr
    assert {item["run"] for item in terminal.items("nodes")} == {"calm"}
    checkpoints = Path(served.bucket, "tpudash/runs/rough/checkpoints")
    assert list(checkpoints.glob("ckpt-*.index")), "checkpoints are kept"
    again = terminal.run("delete", "rough", "--yes", "--wait", "--json", timeout=60)
    assert again.returncode == 0, "deleting what is gone is done"
