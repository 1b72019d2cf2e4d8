"""Questions on a terminal: what destroys wants its name typed, and anything else is a no."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import grpc
import pexpect
import pytest
from google.cloud import tpu_v2

from tests.contract.command_line import CommandLine
from tests.emulator_fixture import PARENT, RUNTIME, EmulatorProcess, node_name
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}


class Terminal:
    """A terminal on which a command asks, and a client that sees what became of it."""

    def __init__(self, emulator: EmulatorProcess, folder: Path) -> None:
        self.environment = CommandLine(folder, emulator.endpoint).environment
        transport = tpu_v2.TpuClient.get_transport_class("grpc")
        channel = grpc.insecure_channel(emulator.endpoint)
        self.tpu = tpu_v2.TpuClient(transport=transport(channel=channel))

    def create(self, node_id: str) -> None:
        node = tpu_v2.Node(accelerator_type="v2-8", runtime_version=RUNTIME, labels=OURS)
        self.tpu.create_node(parent=PARENT, node_id=node_id, node=node, timeout=10)
        ready = tpu_v2.Node.State.READY
        wait_until(
            lambda: self.tpu.get_node(name=node_name(node_id), timeout=10).state == ready,
            within=10,
            what="the node is READY",
        )

    def nodes(self) -> list[str]:
        return [node.name for node in self.tpu.list_nodes(parent=PARENT, timeout=10)]

    def ask(self, *arguments: str) -> pexpect.spawn[str]:
        environment = {**self.environment, "TERM": "xterm"}
        command = ["-m", "tpudash", *arguments]
        return pexpect.spawn(
            sys.executable,
            command,
            env=environment,
            timeout=20,
            encoding="utf-8",
            dimensions=(24, 80),
        )


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    emulator = EmulatorProcess(tmp_path / "emulator")
    try:
        yield Terminal(emulator, tmp_path)
    finally:
        emulator.close()


def end(child: pexpect.spawn[str]) -> int:
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None
    return int(child.exitstatus)


def test_a_deletion_is_confirmed_by_typing_the_name(terminal: Terminal) -> None:
    terminal.create("demo-1")
    child = terminal.ask("delete", "demo", "--wait")
    child.expect("Deletes node demo-1")
    child.expect("DeleteNode")
    child.expect("type demo to go ahead")
    child.sendline("y")
    assert end(child) == 2
    assert "nothing was done" in (child.before or "")
    assert terminal.nodes() == [node_name("demo-1")]

    child = terminal.ask("delete", "demo", "--wait")
    child.expect("type demo to go ahead")
    child.sendline("demo")
    assert end(child) == 0
    assert terminal.nodes() == []


def test_ctrl_c_at_the_question_is_130_and_changes_nothing(terminal: Terminal) -> None:
    terminal.create("demo-1")
    child = terminal.ask("delete", "demo")
    child.expect("type demo to go ahead")
    child.sendintr()
    assert end(child) == 130
    assert terminal.nodes() == [node_name("demo-1")]


def test_a_launch_is_a_yes_or_no_with_no_first(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    child = terminal.ask(
        "launch", "demo", "--accelerator", "v2-8", "--zone", "us-central1-b",
        "--bucket", str(tmp_path / "bucket"),
    )  # fmt: skip
    child.expect("CreateNode")
    child.expect(r"\[y/N\]")
    child.sendline("")
    assert end(child) == 2
    assert terminal.nodes() == []
    assert list((tmp_path / "bucket").iterdir()) == []


def test_a_table_fits_the_terminal(terminal: Terminal) -> None:
    terminal.create("demo-1")
    child = terminal.ask("nodes")
    assert end(child) == 0
    lines = (child.before or "").splitlines()
    assert max(map(len, lines)) <= 80
    assert "READY" in lines[1]
