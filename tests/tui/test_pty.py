"""The console on a real pseudo-terminal: however it ends, it ends soon and tidies up."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.pty_screen import PtyScreen
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
LEAVE_ALTERNATE_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
MOUSE_ON = b"\x1b[?1000h"
MOUSE_OFF = b"\x1b[?1000l"
REVERSE = re.compile(rb"\x1b\[(?:\d+;)*7[;m]")
TRUE_COLOR = b"38;2;"
COLOR_OF_256 = b"38;5;"
COLOR_OF_16 = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])[;m]")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., PtyScreen]]:
    screens = []

    def start(
        columns: int = 80, rows: int = 24, term: str = "xterm-256color", **environment: str
    ) -> PtyScreen:
        keep = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
        screen = PtyScreen(
            [sys.executable, "-m", "tests.tui.pty_console", "64"],
            environment={**keep, "LANG": "C.UTF-8", "COLORTERM": "truecolor", **environment},
            folder=ROOT,
            columns=columns,
            rows=rows,
            term=term,
        )
        screens.append(screen)
        screen.wait_for("TRAINING", within=30)
        screen.wait_for("demo", within=30)
        return screen

    yield start
    for screen in screens:
        with contextlib.suppress(OSError):
            screen.close()


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, None)]
)
def test_a_signal_ends_it_within_a_second_and_restores_the_terminal(
    start: Callable[..., PtyScreen], how: signal.Signals, code: int | None
) -> None:
    screen = start()
    if code is None:
        screen.type("\x03")
        screen.wait_for("Leave tpudash?")
        screen.type("\x03")
    else:
        screen.child.kill(how)
    began = time.monotonic()
    assert screen.wait_for_end(within=5) == (code or 0)
    assert time.monotonic() - began < 2
    assert LEAVE_ALTERNATE_SCREEN in screen.output
    assert SHOW_CURSOR in screen.output
    assert screen.output.count(MOUSE_ON) <= screen.output.count(MOUSE_OFF)


@pytest.mark.parametrize("keys", ["", "D", ":", "q"])
def test_a_line_that_drops_ends_it_whatever_is_open(
    start: Callable[..., PtyScreen], keys: str
) -> None:
    screen = start()
    screen.type(keys)
    screen.hang_up()
    began = time.monotonic()
    assert screen.wait_for_end(within=5) == 129
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_although_the_event_loop_itself_is_stuck(
    start: Callable[..., PtyScreen], how: signal.Signals, code: int, tmp_path: Path
) -> None:
    screen = start(DEAF_IN=str(tmp_path))
    (tmp_path / "asked").touch()
    wait_until((tmp_path / "deaf").exists, within=10, what="the event loop is stuck")
    screen.child.kill(how)
    began = time.monotonic()
    assert screen.wait_for_end(within=5) == code
    assert time.monotonic() - began < 2
    assert LEAVE_ALTERNATE_SCREEN in screen.output
    assert SHOW_CURSOR in screen.output


def test_quitting_is_quick_although_the_background_is_stuck(
    start: Callable[..., PtyScreen],
) -> None:
    screen = start()
    screen.type("q")
    screen.wait_for("Leave tpudash?")
    began = time.monotonic()
    screen.type("q")
    assert screen.wait_for_end(within=5) == 0
    assert time.monotonic() - began < 2


def test_a_terminal_that_goes_away_ends_it(start: Callable[..., PtyScreen]) -> None:
    screen = start()
    os.close(screen.child.child_fd)
    screen.child.closed = True
    screen.child.child_fd = -1
    screen.wait_for_end(within=5)


def test_no_color_means_no_color(start: Callable[..., PtyScreen]) -> None:
    screen = start(NO_COLOR="1")
    assert TRUE_COLOR not in screen.output
    assert REVERSE.search(screen.output), "without colours the cursor must still be seen"


def test_over_ssh_the_mouse_is_left_alone(start: Callable[..., PtyScreen]) -> None:
    screen = start(SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22")
    assert MOUSE_ON not in screen.output


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (60, 15)])
def test_the_first_frame_holds_the_key_facts(
    start: Callable[..., PtyScreen], size: tuple[int, int]
) -> None:
    screen = start(columns=size[0], rows=size[1])
    for fact in ("EMULATOR", "1 Nodes", "NAME", "TRAINING", "450/600", "? help"):
        screen.wait_for(fact)


@pytest.mark.parametrize(
    ("depth", "term", "colorterm"),
    [
        ("true", "xterm-256color", "truecolor"),
        ("256", "xterm-256color", ""),
        ("256", "tmux-256color", ""),
        ("16", "xterm", ""),
        ("16", "screen", ""),
    ],
)
def test_every_colour_depth_has_its_own_codes_and_the_same_words(
    start: Callable[..., PtyScreen], depth: str, term: str, colorterm: str
) -> None:
    screen = start(term=term, COLORTERM=colorterm)
    assert (TRUE_COLOR in screen.output) is (depth == "true")
    assert (COLOR_OF_256 in screen.output) is (depth == "256")
    if depth == "16":
        assert COLOR_OF_16.search(screen.output)
    for words in ("● TRAINING", "● READY"):
        screen.wait_for(words)
    screen.type("s")
    screen.wait_for("◆ PREEMPTED")


def test_without_utf_8_everything_is_ascii(start: Callable[..., PtyScreen]) -> None:
    screen = start(LANG="C", LC_ALL="C")
    screen.wait_for("* TRAINING")
    assert screen.text.isascii(), [line for line in screen.lines if not line.isascii()]


def test_a_shell_takes_the_terminal_and_gives_it_back(start: Callable[..., PtyScreen]) -> None:
    screen = start(columns=140)
    screen.type("j")
    screen.wait_for("s shell")
    screen.type("s")
    screen.wait_for("demo-1/0>")
    screen.type("echo $((6*7))\r")
    screen.wait_for("42")
    screen.type("sleep 100\r")
    screen.type("\x03")
    screen.type("echo still $((40+3))\r")
    screen.wait_for("still 43")
    screen.type("exit 3\r")
    screen.wait_for("1 Nodes")
    screen.wait_for("ended with status 3")
    screen.type("?")
    screen.wait_for("Help")


def test_a_signal_ends_it_while_a_shell_has_the_terminal(start: Callable[..., PtyScreen]) -> None:
    screen = start(columns=140)
    screen.type("j")
    screen.wait_for("s shell")
    screen.type("s")
    screen.wait_for("demo-1/0>")
    screen.child.kill(signal.SIGTERM)
    began = time.monotonic()
    assert screen.wait_for_end(within=5) == 143
    assert time.monotonic() - began < 2
