"""The real console on a real terminal, through what happens to a session that stays open."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import TPUDASH, clean_environment
from tests.e2e.pty_screen import PtyScreen
from tests.emulator_fixture import EmulatorProcess
from tpudash.gateways.emulator_control import EmulatorControl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = "gcloud auth application-default login"
FAST = {
    f"TPUDASH_INTERVALS_{name}": "1"
    for name in ("NODES", "REQUESTS", "RUNS", "METRICS", "CHECKLIST")
}


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[EmulatorProcess]:
    served = EmulatorProcess(tmp_path / "world")
    try:
        yield served
    finally:
        served.close()


def open_screen(folder: Path, endpoint: str, *arguments: str) -> PtyScreen:
    environment = clean_environment(folder) | FAST
    environment |= {"TPUDASH_ENDPOINT": endpoint, "TPUDASH_PROJECT": "demo", "LANG": "C.UTF-8"}
    return PtyScreen([*TPUDASH, *arguments], environment=environment, folder=folder)


def steer(endpoint: str, name: str, *values: Any, **fields: Any) -> None:
    async def tell() -> None:
        control = EmulatorControl(endpoint)
        try:
            await getattr(control, name)(*values, **fields)
        finally:
            await control.close()

    asyncio.run(tell())


def test_a_sign_in_that_ends_says_which_command_helps_and_the_session_goes_on_after_it(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    screen = open_screen(tmp_path, emulator.endpoint)
    try:
        screen.wait_for("There are no nodes", within=30)
        steer(emulator.endpoint, "add_fault", "error", code="UNAUTHENTICATED")
        screen.wait_for(COMMAND)
        screen.wait_for("FAILING: not signed in")
        screen.type("?")
        screen.wait_for("Help")
        screen.type("\x1b")
        steer(emulator.endpoint, "clear_faults", None)
        screen.wait_for("\u25001 Nodes")
        wait_gone(screen, COMMAND)
        screen.type("q")
        assert screen.wait_for_end(within=5) == 0
    finally:
        screen.close()


def wait_gone(screen: PtyScreen, words: str, *, within: float = 40) -> None:
    from tests.waiting import wait_until

    wait_until(lambda: words not in screen.text, within=within, what=f"{words!r} is gone")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_wall_goes_on_when_its_endpoint_dies_and_is_born_again(tmp_path: Path) -> None:
    port = str(free_port())
    first = EmulatorProcess(tmp_path / "world", "--port", port)
    screen = open_screen(tmp_path, first.endpoint, "watch")
    try:
        screen.wait_for("no nodes", within=30)
        first.kill()
        screen.wait_for("nodes FAILING", within=20)
        second = EmulatorProcess(tmp_path / "world", "--port", port)
        try:
            wait_gone(screen, "FAILING")
            screen.wait_for("WATCH")
        finally:
            second.close()
    finally:
        screen.close()
        first.close()


def test_a_terminal_that_shrinks_to_nothing_and_returns_is_drawn_again(
    emulator: EmulatorProcess, tmp_path: Path
) -> None:
    screen = open_screen(tmp_path, emulator.endpoint)
    try:
        screen.wait_for("There are no nodes", within=30)
        for rows, columns in ((1, 1), (0, 0), (1, 200), (60, 1), (2, 2), (15, 60), (24, 80)):
            screen.resize(rows, columns)
            screen.type("z2")
        screen.wait_for("2 Utilization")
        screen.type("1")
        screen.wait_for("There are no nodes")
        assert b"Traceback" not in screen.output
        screen.type("q")
        assert screen.wait_for_end(within=5) == 0
    finally:
        screen.close()
