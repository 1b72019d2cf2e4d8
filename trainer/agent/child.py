"""The trainer as a child process in a session of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_LONGEST_LINE = 65536
_TAIL_LINES = 60


class Child:
    """A running command.

    Its stdin is a pipe whose other end dies with this process, so the trainer learns of that even
    when the agent is killed. Both outputs are always read, so the trainer never waits for a reader.

    Args:
        command: what to run.
        environment: its whole environment.
        on_line: called from reader threads with ("stdout" or "stderr", one line).
        on_exit: called from a thread when it ended and all output was read.
        on_trouble: told when `on_line` failed.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        on_line: Callable[[str, str], None],
        on_exit: Callable[[], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        self._on_line = on_line
        self._on_trouble = on_trouble
        self.stderr_tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.heard_at = time.monotonic()
        """When the last line came, on the monotonic clock."""
        self._ended = threading.Event()
        self._process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        pipes = (("stdout", self._process.stdout), ("stderr", self._process.stderr))
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), name=name, daemon=True)
            for name, pipe in pipes
            if pipe is not None
        ]
        for reader in self._readers:
            reader.start()
        threading.Thread(target=self._wait, args=(on_exit,), name="child", daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code, negative for a signal; None until it ended and its output was read."""
        return self._process.returncode if self._ended.is_set() else None

    def say(self, line: str) -> None:
        """Write a line to the command's stdin."""
        pipe = self._process.stdin
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.write(f"{line}\n".encode())
                pipe.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        while line := pipe.readline(_LONGEST_LINE):
            self.heard_at = time.monotonic()
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if name == "stderr":
                self.stderr_tail.append(text)
            try:
                self._on_line(name, text)
            except Exception as error:  # noqa: BLE001 - a trainer must never wait for a dead reader
                self._on_trouble(f"a line of {name} was not taken in: {error!r}")

    def _wait(self, on_exit: Callable[[], None]) -> None:
        self._process.wait()
        # A grandchild may hold the pipes open; the command itself is what counts.
        for reader in self._readers:
            reader.join(timeout=3.0)
        self._ended.set()
        on_exit()


def _start_time(pid: int) -> str | None:
    """Return when a process started, as text that tells it from a later one of the same id."""
    try:
        answer = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    state, _, started = answer.stdout.strip().partition(" ")
    return None if state.startswith("Z") else started.strip() or None


def remember(path: Path, pid: int) -> None:
    """Note which process is the trainer, for the agent that follows if this one is killed."""
    path.write_text(json.dumps({"pid": pid, "started": _start_time(pid)}))


def outwait(path: Path, patience_s: float, cancelled: Callable[[], bool]) -> str | None:
    """Wait until the trainer of an earlier agent is gone; kill it when patience ends.

    Returns:
        What happened, or None if there was no such trainer.
    """
    try:
        noted = json.loads(path.read_text())
        pid, started = int(noted["pid"]), noted["started"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if started is None or _start_time(pid) != started:
        return None
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and not cancelled():
        if _start_time(pid) != started:
            return f"the trainer of the earlier agent (pid {pid}) ended by itself"
        time.sleep(0.3)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return f"the trainer of the earlier agent (pid {pid}) did not end and was killed"
