"""The agents of a slice whose recipe runs on all workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.unit.trainer.node import fake_trainer, spec
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import NodeFactory

ENDPOINTS = "instance/attributes/worker-network-endpoints"
TELLS_WHERE_IT_IS = """
import os
name = "told-" + os.environ["TPUDASH_WORKER"]
told = {key: value for key, value in os.environ.items() if key.startswith("TPUDASH_")}
open(os.path.join(os.path.dirname(__file__), name), "w").write(json.dumps(told))
"""
LOSES_A_WORKER = TELLS_WHERE_IT_IS + 'emit("worker", step=5)\nsys.exit(9)\n'


def of_all(folder: Path, body: str) -> dict[str, Any]:
    """Return the spec of a recipe that runs on all workers."""
    command = fake_trainer(folder, body)
    recipe = {"name": "x", "command": command, "environment": {}, "workers": "all"}
    return spec(folder, command, recipe=recipe)


def test_each_worker_is_told_its_number_and_where_worker_0_is(
    make_node: NodeFactory, run_folder: Path
) -> None:
    node = make_node(of_all(run_folder, TELLS_WHERE_IT_IS), 1)
    node.metadata.set(ENDPOINTS, "unknown:unknown:10.1.0.5,unknown:unknown:10.1.0.6")
    assert node.start().wait(30) == 0, node.console()
    told = json.loads((run_folder / "told-1").read_text())
    assert (told["TPUDASH_WORKERS"], told["TPUDASH_COORDINATOR"]) == ("2", "10.1.0.5")
    assert not (run_folder / "result.json").exists(), "worker 0 alone tells of the run"


def test_worker_does_not_start_again_once_worker_0_has_ended_the_attempt(
    make_node: NodeFactory, run_folder: Path
) -> None:
    node = make_node(of_all(run_folder, LOSES_A_WORKER), 1)
    agent = node.start(restarts=50, backoff_s=0.1)
    wait_until(
        lambda: "starting it again" in node.console(), within=40, what="another life of the trainer"
    )
    record = run_folder / "attempts/1.json"
    record.write_text(json.dumps({"schema": 1, "state": "FAILED", "run": "demo", "attempt": 1}))
    assert agent.wait(60) == 65
    again = node.start()
    assert again.wait(30) == 65
    assert "already FAILED" in node.console()
