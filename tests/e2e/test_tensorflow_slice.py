"""TensorFlow on an emulated slice: four machines, one program, and agents on all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import ServedEmulator

pytestmark = [pytest.mark.slow, pytest.mark.trains, pytest.mark.timeout(240)]


def programs(served: ServedEmulator) -> dict[str, list[psutil.Process]]:
    """Return the agents and the trainers that run on the nodes."""
    found: dict[str, list[psutil.Process]] = {"trainer.agent": [], "trainer": []}
    for process in served.node_processes():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        name = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
        if name in found:
            found[name].append(process)
    return found


def test_worker_0_trains_and_the_others_have_an_agent_that_stands_by(
    served: ServedEmulator,
) -> None:
    terminal = served.terminal
    terminal.items(
        "launch", "pod", "--accelerator", "v4-32", "--zone", "us-central2-b", "--bucket",
        served.bucket, "--steps", "60", "--checkpoint-every", "20", "--batch-size", "32", "--yes",
    )  # fmt: skip
    record = Path(served.bucket, "tpudash/runs/pod/attempts/1.json")

    def training() -> dict[str, Any] | None:
        found = json.loads(record.read_text()) if record.exists() else {}
        return found if found.get("checkpoint_step") else None

    wait_until(lambda: len(programs(served)["trainer.agent"]) == 4, within=60, what="four agents")
    agents = programs(served)["trainer.agent"]
    folders = {Path(agent.environ()["TPUDASH_NODE_DIR"]).name for agent in agents}
    assert folders == {"w0", "w1", "w2", "w3"}
    sessions = {agent.environ()["GCE_METADATA_HOST"] for agent in agents}
    assert len(sessions) == 4, "each machine has a metadata server of its own"
    wait_until(training, within=90, what="a checkpoint")
    wait_until(
        lambda: terminal.the_run("pod")["state"] == "FINISHED", within=60, what="the end of the run"
    )
    (attempt,) = terminal.the_run("pod")["attempts"]
    assert (attempt["workers"], attempt["workers_missing"]) == (4, [])
    entries = terminal.items("logs", "pod", "--limit", "2000")
    told = {entry["worker"] for entry in entries if entry["event"] == "step"}
    assert told == {"0"}
    standing = {entry["worker"] for entry in entries if "stands by" in (entry["text"] or "")}
    assert standing == {"1", "2", "3"}
    installed = {entry["worker"] for entry in entries if "using /" in (entry["text"] or "")}
    assert installed == {"0", "1", "2", "3"}, "the startup script prepares every worker"
