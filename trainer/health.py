"""`python -m trainer.health`: whether the trainer of this container goes on.

Process 1 of a container is its trainer. One that writes its events to a local file must have
written there of late; of another one it is enough that it runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from trainer.config import events_path, parse
from trainer.faults import TrainerError

STALLED_S = 600.0
"""The agent of a node takes a trainer for stalled after the same time."""
_PROGRAMS = ("trainer", "trainer.jax_recipe")


def problem_of(command_line: Path, now: float) -> str | None:
    """Return what is wrong with a trainer, or None.

    Args:
        command_line: file that holds its command line, as /proc has them.
        now: seconds since 1970.
    """
    try:
        words = command_line.read_bytes().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    except OSError as error:
        return f"there is no trainer: {error.strerror}"
    place = next((at for at, word in enumerate(words) if word == "-m"), len(words))
    if place + 1 >= len(words) or words[place + 1] not in _PROGRAMS:
        return None
    try:
        events = events_path(parse(words[place + 2 :]))
        age_s = now - events.stat().st_mtime if events else 0.0
    except (TrainerError, SystemExit, OSError):
        return None
    return f"no event for {age_s:.0f} s" if age_s > STALLED_S else None


def main() -> int:
    """Print what is wrong, and return 1 then."""
    problem = problem_of(Path("/proc/1/cmdline"), time.time())
    sys.stdout.write(f"{problem or 'it goes on'}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
