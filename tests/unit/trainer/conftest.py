"""Fixtures of the trainer's tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trainer.node import LogServer, MetadataServer, record, start_agent
from tests.waiting import wait_until
from tpudash.emulator.machines.leftovers import kill_processes_of


class Node:
    """One worker under test: its agent processes, its servers, its run's folder."""

    def __init__(self, base: Path, run_spec: dict[str, Any], logs: LogServer, worker: int) -> None:
        self.run = Path(run_spec["run_url"])
        self.dir = base / f"node-{worker}"
        self.logs = logs
        self.metadata = MetadataServer.of_node(run_spec, worker=worker)
        self._agents: list[Any] = []

    def start(self, endpoint: str = "", **settings: object) -> Any:
        """Start an agent."""
        where = endpoint or f"127.0.0.1:{self.logs.port}"
        agent = start_agent(self.dir, self.metadata, where, **settings)
        self._agents.append(agent)
        return agent

    def wait_state(self, state: str, attempt: int = 1) -> dict[str, Any]:
        """Wait until the attempt's record tells a state, and return the record."""

        def found() -> dict[str, Any] | None:
            current = record(self.run, attempt)
            return current if current.get("state") == state else None

        return wait_until(found, within=40, what=f"{state}; {self.console()}") or {}

    def console(self) -> str:
        """Return what was printed on the node's console."""
        return (self.dir / "console.log").read_text()

    def trainer_pid(self) -> int:
        """Return the process id that the agent noted for its trainer."""
        return int(json.loads((self.dir / "trainer.json").read_text())["pid"])

    def close(self) -> None:
        """End what still runs."""
        for agent in self._agents:
            if agent.poll() is None:
                agent.kill()
                agent.wait()
        if (self.dir / "trainer.json").exists():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.trainer_pid(), signal.SIGKILL)
        # Startup scripts, and what they started, whatever became of the test.
        kill_processes_of(self.dir)
        self.metadata.close()


NodeFactory = Callable[..., Node]


@pytest.fixture
def logs() -> Iterator[LogServer]:
    """Return a running log server."""
    server = LogServer()
    yield server
    server.close()


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Return the empty folder of a run."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def make_node(tmp_path: Path, logs: LogServer) -> Iterator[NodeFactory]:
    """Return a function that makes a node for a spec."""
    nodes: list[Node] = []

    def make(run_spec: dict[str, Any], worker: int = 0) -> Node:
        node = Node(tmp_path, run_spec, logs, worker)
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.close()
