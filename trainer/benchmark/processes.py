"""Real trainer processes, timed by the moment their events arrive."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ROOT = str(Path(__file__).parents[2])


class TimedTrainer:
    """A trainer process.

    Attributes:
        seconds_to_first_step: from the start of the process; None until then.
        events: all events so far.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._began = time.monotonic()
        self.events: list[dict[str, Any]] = []
        self.seconds_to_first_step: float | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trainer", *arguments, "--events", "none"],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def follow(self) -> Iterator[dict[str, Any]]:
        """Yield events as they arrive, until the process closes its stdout."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        for line in self._process.stdout:
            event = json.loads(line)
            self.events.append(event)
            if event["event"] == "step" and self.seconds_to_first_step is None:
                self.seconds_to_first_step = time.monotonic() - self._began
            yield event

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind so far."""
        return [event for event in self.events if event["event"] == kind]

    def finish(self) -> dict[str, Any]:
        """Wait for the end and return the `finish` event.

        Raises:
            TrainerError: the trainer failed; its own error is passed on.
        """
        for _ in self.follow():
            pass
        code = self._process.wait()
        found = self.of_kind("finish")
        if code == 0 and found:
            return found[0]
        errors = self.of_kind("error")
        said = errors[-1] if errors else {"class": "UNCLASSIFIED", "detail": f"exit code {code}"}
        raise TrainerError(
            ExitCode(code) if code in set(ExitCode) and code else ExitCode.DEFECT,
            said["class"],
            f"the trainer failed: {said['detail']}",
            said.get("hint", "run python -m trainer with the same flags to see why"),
        )

    def ask_to_stop(self) -> None:
        """Send SIGTERM, as a preempted node does."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        return self._process.wait()

    def close(self) -> None:
        """Kill what still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def preemption_cycle(arguments: Sequence[str], after_step: int) -> dict[str, Any]:
    """Preempt a run in mid-training, start it again, and time it all.

    Returns:
        Seconds from start to first step, from SIGTERM to saved and ended, from there to the first
        step of the second life, and from SIGTERM to that step.
    """
    first = TimedTrainer(arguments)
    second: TimedTrainer | None = None
    try:
        _until_step(first, after_step)
        asked = time.monotonic()
        first.ask_to_stop()
        for _ in first.follow():
            pass
        code = first.wait()
        ended = time.monotonic()
        if code != ExitCode.PREEMPTED:
            raise TrainerError(
                ExitCode.DEFECT,
                "UNCLASSIFIED",
                f"the preempted trainer ended with {code} instead of {int(ExitCode.PREEMPTED)}",
                "give it more --steps, so that it is still training when it is preempted",
            )
        second = TimedTrainer(arguments)
        _until_step(second, 0)
        stepping = time.monotonic()
    finally:
        first.close()
        if second is not None:
            second.close()
    saves = first.of_kind("checkpoint")
    return {
        "first_step_s": round(first.seconds_to_first_step or 0.0, 3),
        "saved_and_ended_s": round(ended - asked, 3),
        "restart_to_step_s": round(stepping - ended, 3),
        "preempted_to_stepping_s": round(stepping - asked, 3),
        "restored_step": second.of_kind("restore")[0]["step"],
        "checkpoints": saves,
    }


def _until_step(trainer: TimedTrainer, step: int) -> None:
    for event in trainer.follow():
        if event["event"] == "step" and event["step"] >= step:
            return
    trainer.finish()


def plain_loop(data: Path, epochs: int, batch_size: int, folder: Path) -> dict[str, Any]:
    """Run the plain loop in a process of its own and return its figures.

    Raises:
        TrainerError: it failed.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "trainer.benchmark.plain"),
            *(str(data), str(epochs), str(batch_size), str(folder)),
        ],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [""]
        raise TrainerError(
            ExitCode.DEFECT,
            "UNCLASSIFIED",
            f"the plain loop failed: {lines[-1]}",
            "run without the comparison: --no_compare",
        )
    figures = json.loads(done.stdout.splitlines()[-1])
    return figures if isinstance(figures, dict) else {}
