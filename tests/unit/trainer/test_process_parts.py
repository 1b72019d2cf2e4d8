"""Events, signals and the job lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.trainer.node import REPOSITORY
from tests.waiting import wait_until
from trainer.events import EventWriter, finite, last_reported_step
from trainer.faults import TrainerError
from trainer.joblock import JobLock
from trainer.stopping import StopRequest

if TYPE_CHECKING:
    from pathlib import Path

WAITS = """
import time
from trainer.stopping import StopRequest, stop_on_signals, watch_stdin
stop = StopRequest()
stop_on_signals(stop)
watch_stdin(stop)
print("ready", flush=True)
while not stop.reason: time.sleep(0.02)
print(stop.reason, flush=True)
time.sleep(60)
"""


def start_waiting() -> subprocess.Popen[str]:
    """Start a process that waits for a request to stop, and goes on after it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_events_go_to_both_places_in_one_line(tmp_path: Path) -> None:
    read, write = os.pipe()
    events = EventWriter(run="r", attempt=2, stdout=write, file=tmp_path / "events")
    events.emit("step", "two\nlines", step=3)
    events.emit("warning", "w", severity="WARNING")
    lines = os.read(read, 10_000).decode().splitlines()
    assert (tmp_path / "events").read_text().splitlines() == lines
    first = json.loads(lines[0])
    assert first["ts"].endswith("Z")
    assert {key: first[key] for key in ("seq", "run", "attempt", "event", "step")} == {
        "seq": 1,
        "run": "r",
        "attempt": 2,
        "event": "step",
        "step": 3,
    }
    assert json.loads(lines[1])["seq"] == 2


def test_closed_stdout_is_told_once_and_the_file_goes_on(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    lost: list[int] = []
    events = EventWriter(
        run="r",
        attempt=1,
        stdout=write,
        file=tmp_path / "events",
        on_stdout_lost=lambda: lost.append(1),
    )
    events.emit("a", "a")
    events.emit("b", "b")
    assert lost == [1]
    assert len((tmp_path / "events").read_text().splitlines()) == 2


def test_last_reported_step(tmp_path: Path) -> None:
    path = tmp_path / "events"
    assert last_reported_step(path) == -1
    path.write_text('{"event": "step", "step": 9}\n{"event": "finish", "step": 99}\n{"event": "st')
    assert last_reported_step(path) == 9


def test_finite() -> None:
    assert finite(float("nan")) is None
    assert finite(None) is None
    assert finite(1.23456789) == 1.234568


def test_first_sigterm_asks_and_the_second_ends_at_once() -> None:
    process = start_waiting()
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "SIGTERM\n"

    def gone() -> bool:
        process.send_signal(signal.SIGTERM)
        return process.poll() is not None

    wait_until(gone, within=10, what="the second signal ends it")
    assert process.returncode == 128 + signal.SIGTERM
    assert process.stderr is not None
    assert "ending without a checkpoint" in process.stderr.read()


def test_end_of_stdin_asks_to_stop() -> None:
    process = start_waiting()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    assert process.stdout.readline() == "the supervising agent ended\n"
    process.kill()
    process.wait()


def test_word_on_stdin_asks_to_stop_and_a_signal_after_it_is_the_first() -> None:
    process = start_waiting()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("hello\nstop the node goes\n")
    process.stdin.flush()
    assert process.stdout.readline() == "the node goes\n"
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    process.kill()
    process.wait()


def test_stop_request_keeps_the_first_reason() -> None:
    stop = StopRequest()
    assert (stop.reason, stop.age_s) == (None, 0.0)
    assert stop.ask("a")
    assert not stop.ask("b")
    assert stop.reason == "a"


def test_job_lock_keeps_the_second_out(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import sys, time; from trainer.joblock import JobLock\n"
                "JobLock(sys.argv[1]).acquire(wait_s=0, on_wait=print, cancelled=lambda: False)\n"
                "print('held', flush=True); time.sleep(60)"
            ),
            str(tmp_path),
        ],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waits: list[str] = []
    with pytest.raises(TrainerError) as caught:
        JobLock(str(tmp_path)).acquire(wait_s=0.3, on_wait=waits.append, cancelled=lambda: False)
    assert f"pid {holder.pid}" in caught.value.detail
    assert len(waits) == 1
    holder.kill()
    holder.wait()
    JobLock(str(tmp_path)).acquire(wait_s=5, on_wait=waits.append, cancelled=lambda: False)
