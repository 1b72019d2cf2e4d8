"""How fast the console is. Run on demand, on a quiet machine: pytest tests/bench -s

Absolute figures are a guide for two cores of 2026; ratios are to a bare Textual app that is
measured in the same run. The goal for the first frame is 500 ms as well.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
FIRST_FRAME_RATIO = 2.5
STARTS = 7
WATCHED_S = 15.0
MINUTE_S = 60.0
"""Ages and dollars of all rows move on together, some times a minute."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TPUDASH_STATE_DIR": str(tmp_path / "state"),
        "TPUDASH_CONFIG_DIR": str(tmp_path / "config"),
    }


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    started = []

    def start(*arguments: str, columns: int = 120, rows: int = 40) -> Terminal:
        command = [sys.executable, *arguments]
        terminal = Terminal(command, environment, columns=columns, rows=rows)
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        with contextlib.suppress(OSError):
            terminal.close()


@pytest.fixture
def black_hole() -> Iterator[str]:
    """An address at which connections are taken and never answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def dead() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def bench_console(nodes: int, kind: str) -> tuple[str, ...]:
    return ("-m", "tests.bench.console", str(nodes), kind)


def tell(words: str) -> None:
    print(f"\n  {words}", flush=True)


def first_frame(start: Callable[..., Terminal], command: tuple[str, ...], marker: bytes) -> float:
    """Return the time from exec to the first frame."""
    terminal = start(*command)
    seconds = terminal.wait_for(marker)
    terminal.close()
    terminal.pid = 0
    return seconds


@pytest.mark.parametrize("endpoint", ["black_hole", "dead"])
def test_first_frame(
    start: Callable[..., Terminal], endpoint: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(endpoint)
    console = ("-m", "tpudash", "console", "--endpoint", address, "--project", "demo")
    commands = {
        "ours": (console, b"Nodes"),
        "filled": (bench_console(64, "still"), b"run-0003"),
        "bare": (("-m", "tests.bench.bare"), b"hello"),
    }
    # By turns, and the best of each, so that whatever else the machine does weighs on all alike.
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, (command, marker) in commands.items():
            times[name].append(first_frame(start, command, marker))
    ours, filled, bare = (min(times[name]) for name in commands)
    tell(
        f"first frame, endpoint {endpoint}: {ours * 1000:.0f} ms, with 64 nodes filled in "
        f"{filled * 1000:.0f} ms, bare Textual {bare * 1000:.0f} ms, ratio {ours / bare:.2f}"
    )
    assert ours <= FIRST_FRAME_RATIO * bare
    assert filled <= FIRST_FRAME_RATIO * bare


def test_nothing_changing(start: Callable[..., Terminal]) -> None:
    bare = start("-m", "tests.bench.bare")
    bare.wait_for(b"hello")
    bare.settle()
    frozen = start(*bench_console(64, "frozen"))
    still = start(*bench_console(64, "still"))
    for terminal in (frozen, still):
        terminal.wait_for(b"run-0003")
        terminal.settle(1.5, within=8)
    control = bare.watch(WATCHED_S)
    stopped = frozen.watch(WATCHED_S)
    ticking = still.watch(MINUTE_S)
    tell(
        f"nothing changes: {stopped.bytes_per_second:.0f} B/s, {stopped.cpu_percent:.2f} % CPU; "
        f"with the clock {ticking.bytes_per_second:.0f} B/s, {ticking.cpu_percent:.2f} %; "
        f"bare Textual {control.bytes_per_second:.0f} B/s, {control.cpu_percent:.2f} %"
    )
    assert stopped.bytes == 0
    assert ticking.bytes_per_second < 600
    assert stopped.cpu_percent <= max(0.5, control.cpu_percent + 0.5)


def test_one_changed_cell(start: Callable[..., Terminal]) -> None:
    terminal = start(*bench_console(64, "one-cell"))
    terminal.wait_for(b"run-0003")
    terminal.watch(3)
    span = terminal.watch(10)
    tell(f"one changed cell: {span.bytes / 10:.0f} bytes")
    assert span.bytes / 10 <= 600


def test_steady(start: Callable[..., Terminal]) -> None:
    terminal = start(*bench_console(64, "steady"))
    terminal.wait_for(b"run-0003")
    terminal.watch(4)
    span = terminal.watch(30)
    tell(
        f"64 nodes, 10 log lines/s: {span.bytes_per_second / 1000:.1f} KB/s, "
        f"{span.cpu_percent:.1f} % CPU"
    )
    assert span.bytes_per_second <= 25_000
    assert span.cpu_percent <= 5


def test_keys_under_load(start: Callable[..., Terminal]) -> None:
    terminal = start(*bench_console(64, "cells"))
    terminal.wait_for(b"run-0003")
    terminal.watch(3)
    idle = start(*bench_console(64, "frozen"))
    idle.wait_for(b"run-0003")
    idle.watch(3)
    figures = {}
    for name, one in (("under load", terminal), ("idle", idle)):
        times = sorted(latency_of(one, key) for key in (b"j", b"k") * 75)
        figures[name] = (statistics.median(times), times[int(len(times) * 0.99) - 1])
    for name, (p50, p99) in figures.items():
        tell(f"key to first byte {name}: p50 {p50 * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms")
    assert figures["under load"][0] <= 0.020
    assert figures["under load"][1] <= 0.080


def latency_of(terminal: Terminal, key: bytes) -> float:
    """Return the time from a key to the next byte, from a moment at which nothing is under way."""
    while terminal.read(0.004):
        pass
    return terminal.key(key)[0]


@pytest.mark.parametrize("keys", ["scroll", "filter"])
def test_five_thousand_nodes(start: Callable[..., Terminal], keys: str) -> None:
    terminal = start(*bench_console(5_000, "frozen"))
    terminal.wait_for(b"run-0003", within=60)
    terminal.settle(1.5)
    walk = {
        "scroll": [b"\x1b[6~"] * 10 + [b"j"] * 10 + [b"G", b"g"] * 3 + [b"s"] * 3,
        "filter": [b"/", b"r", b"u", b"n", b"-", b"4", b"9", b"1"] + [b"\x7f"] * 7,
    }[keys]
    times = []
    for key in walk:
        times.append(terminal.key(key)[0])
        terminal.settle(0.3)
    tell(f"5,000 runs and nodes, {keys}: worst {max(times) * 1000:.0f} ms per key")
    assert max(times) <= 0.100


@pytest.mark.parametrize("after_s", [0.0, 2.5])
def test_quitting_black_holed(
    start: Callable[..., Terminal], black_hole: str, after_s: float
) -> None:
    times = []
    for _ in range(5):
        terminal = start(
            *("-m", "tpudash", "console", "--endpoint", black_hole, "--project", "demo")
        )
        terminal.wait_for(b"Nodes")
        terminal.watch(0.2 + after_s)
        os.write(terminal.file, b"q")
        times.append(terminal.wait_for_end())
    worst = max(times)
    tell(f"quit, black-holed, {after_s:g} s after the first frame: {worst * 1000:.0f} ms at worst")
    assert worst <= 0.300
