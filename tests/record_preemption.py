"""Makes the recording of a preemption that tests replay: a real run on a real emulator.

Run it from the repository: `python -m tests.record_preemption FILE`. It takes about a minute and
needs TensorFlow. The run is preempted with ten seconds' notice and resumed on a second node.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from tests.e2e.conftest import ServedEmulator, Terminal, serve
from tests.waiting import wait_until

RUN = "rough"
STEPS = 20_000
LAUNCH = (
    *("--accelerator", "v2-8", "--zone", "us-central1-b", "--spot", "--seed", "7"),
    *("--steps", str(STEPS), "--checkpoint-every", "100", "--batch-size", "256"),
)


def wait_for(terminal: Terminal, attempt: int) -> None:
    """Wait until an attempt of the run has trained for a while."""

    def has_trained() -> bool:
        run = terminal.the_run(RUN)
        attempts = run["attempts"]
        newest = attempts[-1] if isinstance(attempts, list) and attempts else {}
        begun = newest.get("restored_step") or 0
        return newest.get("attempt") == attempt and (newest.get("step") or 0) >= begun + 150

    wait_until(has_trained, within=120, what=f"attempt {attempt} has trained")


def play(served: ServedEmulator, file: Path) -> None:
    """Record what happens from the launch until the second attempt trains."""
    terminal = served.terminal
    recorder = terminal.popen("record", str(file))
    try:
        launched = terminal.run("launch", RUN, *LAUNCH, "--bucket", served.bucket, "--yes")
        assert launched.returncode == 0, launched.stderr
        wait_for(terminal, 1)
        terminal.run("emulator", "preempt", f"{RUN}-1", "--notice", "10s")
        resumed = terminal.run("resume", RUN, "--yes")
        assert resumed.returncode == 0, resumed.stderr
        wait_for(terminal, 2)
    finally:
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=30)
        sys.stderr.write(said)


def main() -> None:
    """Make the recording."""
    file = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory(prefix="tpudash-recording-") as name:
        folder = Path(name)
        served = serve(folder, folder / "emulator", "--metrics-period", "5s")
        try:
            play(served, file)
        finally:
            served.stop()


if __name__ == "__main__":
    main()
