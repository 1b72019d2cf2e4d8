"""The demo as a stranger meets it: on a real terminal of 80x24, however it is ended."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import TPUDASH, clean_environment, processes_below
from tests.e2e.pty_screen import PtyScreen
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAVE_ALTERNATE_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
HOME = "\x1b[H"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[PtyScreen]:
    screen = start_demo(tmp_path)
    try:
        yield screen
    finally:
        screen.close()
        wait_until(lambda: not processes_below(tmp_path), within=15, what="no process is left")


def start_demo(folder: Path) -> PtyScreen:
    return PtyScreen([*TPUDASH, "demo"], environment=clean_environment(folder), folder=folder)


def test_a_stranger_without_an_account_lands_on_an_emulator_that_says_so(tmp_path: Path) -> None:
    screen = PtyScreen([*TPUDASH], environment=clean_environment(tmp_path), folder=tmp_path)
    try:
        screen.wait_for("EMULATOR", within=30)
        screen.wait_for("this is a local emulator", within=10)
        screen.wait_for("Press L to launch a run", within=10)
        screen.type("q")
        assert screen.wait_for_end(within=10) == 0
    finally:
        screen.close()
    wait_until(lambda: not processes_below(tmp_path), within=15, what="no process is left")


@pytest.mark.trains
def test_the_demo_trains_is_preempted_resumed_and_deleted_at_80x24(
    demo: PtyScreen, tmp_path: Path
) -> None:
    demo.wait_for(row("demo-1", "CREATING"), within=30)
    demo.wait_for(row("demo-1", "READY"), within=30)
    demo.wait_for(row("demo", "TRAINING"), within=60)
    demo.type("3")
    demo.wait_for(re.compile(r"step +\d+/\d+ loss \d"), within=60)
    demo.type("1:preempt")
    demo.wait_for("(emulator)")
    demo.type("\r")
    demo.wait_for(row("demo-1", "PREEMPTED"), within=60)
    demo.type("R")
    demo.wait_for("Cancel")
    demo.type("\t\r")
    demo.wait_for("DONE", within=60)
    demo.type("\r")
    demo.wait_for(row("demo-2", "READY"), within=60)
    demo.wait_for(row("demo", "TRAINING"), within=60)
    demo.type(f"1{HOME}")
    demo.type("D")
    demo.wait_for("Type demo to confirm")
    demo.type("demo\r")
    demo.wait_for("DONE", within=60)
    demo.type("\r")
    demo.wait_for(row("demo", "DELETED"), within=60)
    assert not Path(bucket_of(tmp_path), "result.json").exists()
    assert list(Path(bucket_of(tmp_path), "checkpoints").glob("ckpt-*.index"))
    demo.type("q")
    assert demo.wait_for_end(within=10) == 0
    assert LEAVE_ALTERNATE_SCREEN in demo.output


def row(name: str, state: str) -> re.Pattern[str]:
    """Return what the nodes pane's row of that name looks like in that state."""
    return re.compile(rf"(^|├|└) ?{re.escape(name)} +\S {state}", re.MULTILINE)


def bucket_of(folder: Path) -> str:
    """Return the folder of the demo's run, wherever in the demo's state it lies."""
    (run,) = folder.rglob("tpudash/runs/demo")
    return str(run)


@pytest.mark.trains
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_however_the_demo_ends_no_process_is_left(tmp_path: Path, how: signal.Signals) -> None:
    demo = start_demo(tmp_path)
    try:
        demo.wait_for(row("demo-1", "READY"), within=60)
        demo.child.kill(how)
        demo.wait_for_end(within=5)
        wait_until(lambda: not processes_below(tmp_path), within=15, what="no process is left")
        if how is not signal.SIGKILL:
            assert LEAVE_ALTERNATE_SCREEN in demo.output
            assert demo.output.rfind(SHOW_CURSOR) > demo.output.find(b"READY")
    finally:
        demo.close()
    again = start_demo(tmp_path)
    try:
        again.wait_for(row("demo-1", "CREATING"), within=30)
    finally:
        again.close()
        wait_until(lambda: not processes_below(tmp_path), within=15, what="no process is left")
