"""One console has control; a dead one has none; taking over is explicit and is noticed."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.unit.operations.fake_cloud import FakeClock
from tpudash.operations.control import SILENT_AFTER_S, ControlLock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def console(folder: Path, owner: str, clock: FakeClock, project: str = "demo") -> ControlLock:
    return ControlLock(folder, project, owner, clock)


def test_the_first_console_has_control_and_the_second_is_told_who(
    tmp_path: Path, clock: FakeClock
) -> None:
    alice, bob = console(tmp_path, "alice", clock), console(tmp_path, "bob", clock)
    assert alice.check().is_ours
    found = bob.check()
    assert not found.is_ours
    assert found.holder is not None
    assert (found.holder.owner, found.holder.pid) == ("alice", os.getpid())
    assert found.holder.host == socket.gethostname()
    assert alice.check().is_ours


def test_projects_are_controlled_apart(tmp_path: Path, clock: FakeClock) -> None:
    assert console(tmp_path, "alice", clock, "one").check().is_ours
    assert console(tmp_path, "bob", clock, "two/../one").check().is_ours
    assert sorted(path.parent for path in tmp_path.iterdir()) == [tmp_path] * 4


def test_taking_over_is_explicit_and_the_former_holder_notices(
    tmp_path: Path, clock: FakeClock
) -> None:
    alice, bob = console(tmp_path, "alice", clock), console(tmp_path, "bob", clock)
    alice.check()
    bob.check()
    assert bob.take().is_ours
    found = alice.check()
    assert not found.is_ours
    assert found.holder is not None
    assert found.holder.owner == "bob"
    alice.release()
    assert bob.check().is_ours, "only who has control can give it up"


def test_control_that_was_given_up_is_free(tmp_path: Path, clock: FakeClock) -> None:
    alice, bob = console(tmp_path, "alice", clock), console(tmp_path, "bob", clock)
    alice.check()
    alice.release()
    assert bob.check().is_ours


def test_a_console_that_was_killed_has_no_control(tmp_path: Path, clock: FakeClock) -> None:
    code = (
        "import sys, pathlib, time\n"
        "from tpudash.clock import SystemClock\n"
        "from tpudash.operations.control import ControlLock\n"
        "lock = ControlLock(pathlib.Path(sys.argv[1]), 'demo', 'alice', SystemClock())\n"
        "print(lock.check().is_ours, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "True"
        bob = console(tmp_path, "bob", clock)
        assert not bob.check().is_ours
        other.kill()
        psutil.Process(other.pid).wait(10)
        assert bob.check().is_ours


def test_a_process_that_has_the_number_of_a_dead_one_does_not_count(
    tmp_path: Path, clock: FakeClock
) -> None:
    alice = console(tmp_path, "alice", clock)
    alice.check()
    record = json.loads(alice.path.read_text())
    alice.path.write_text(json.dumps({**record, "started": record["started"] - 500}))
    assert console(tmp_path, "bob", clock).check().is_ours


def test_a_console_on_another_machine_counts_while_it_is_heard_of(
    tmp_path: Path, clock: FakeClock
) -> None:
    alice = console(tmp_path, "alice", clock)
    alice.check()
    record = json.loads(alice.path.read_text())
    alice.path.write_text(json.dumps({**record, "host": "elsewhere"}))
    heard = clock.now().timestamp()
    os.utime(alice.path, (heard, heard))
    bob = console(tmp_path, "bob", clock)
    assert not bob.check().is_ours
    late = heard - timedelta(seconds=SILENT_AFTER_S + 1).total_seconds()
    os.utime(alice.path, (late, late))
    assert bob.check().is_ours


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_damaged_file_is_nobodys_control(tmp_path: Path, clock: FakeClock, content: str) -> None:
    alice = console(tmp_path, "alice", clock)
    alice.path.write_text(content)
    assert alice.check().is_ours


def test_other_users_of_the_machine_can_read_who_has_control(
    tmp_path: Path, clock: FakeClock
) -> None:
    alice = console(tmp_path / "control", "alice", clock)
    alice.check()
    assert stat.S_IMODE(alice.path.stat().st_mode) == 0o644


def test_a_folder_that_cannot_be_written_to_keeps_nobody_from_working(
    tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "file").write_text("not a folder")
    found = console(tmp_path / "file", "alice", clock).check()
    assert found.is_ours
    assert "file" in found.problem
