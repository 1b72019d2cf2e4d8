"""Requests to stop: SIGTERM, SIGINT, or the end of the supervisor."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SAME_NOTICE_S = 1.0
"""Signals this close together are one notice.

A service manager signals every process of a unit and the agent passes its own notice on, so one
preemption can arrive twice.
"""


class StopRequest:
    """Set once by the first request to stop; read by the training loop between device calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._since = 0.0
        self.leave_at_once: Callable[[str], object] | None = None
        """Called with the reason while there is nothing to save, such as during an import."""

    @property
    def reason(self) -> str | None:
        """Why to stop, or None while there is no request."""
        return self._reason

    @property
    def age_s(self) -> float:
        """Seconds since the first request; 0 without one."""
        return time.monotonic() - self._since if self._reason is not None else 0.0

    def ask(self, reason: str) -> bool:
        """Note a request. Returns whether it was the first."""
        with self._lock:
            if self._reason is not None:
                return False
            self._since = time.monotonic()
            self._reason = reason
        leave = self.leave_at_once
        if leave is not None:
            leave(reason)
        return True


def watch_signals(on_signal: Callable[[int], None]) -> None:
    """Report each SIGTERM and SIGINT to `on_signal`, from a thread of its own.

    Python runs its handlers only between calls into TensorFlow, and a handler may interrupt a lock
    that it then waits for. A thread that reads the wake-up pipe has neither trouble.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    claim_signals()
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    threading.Thread(
        target=_read_signals, args=(read_end, on_signal), name="signals", daemon=True
    ).start()


def claim_signals() -> None:
    """Have Python see SIGTERM and SIGINT; again after a library has taken them for itself."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def _read_signals(read_end: int, on_signal: Callable[[int], None]) -> None:
    while True:
        for number in os.read(read_end, 64):
            if number in (signal.SIGTERM, signal.SIGINT):
                on_signal(number)


def stop_on_signals(stop: StopRequest) -> None:
    """Turn SIGTERM and SIGINT into a request to stop; a second one ends the process at once."""
    first_at: list[float] = []

    def on_signal(number: int) -> None:
        name = signal.Signals(number).name
        stop.ask(name)
        first_at.append(time.monotonic())
        if first_at[-1] - first_at[0] < SAME_NOTICE_S:
            return
        os.write(2, f"trainer: second {name}, ending without a checkpoint\n".encode())
        os._exit(128 + number)

    watch_signals(on_signal)


def watch_stdin(stop: StopRequest) -> None:
    """Ask to stop when stdin says `stop REASON` on a line, or ends.

    It ends when the process that supervises this one dies, even of SIGKILL. A word on stdin is no
    signal, so it never counts as the first of two.
    """
    threading.Thread(target=_read_stdin, args=(stop,), name="stdin", daemon=True).start()


def _read_stdin(stop: StopRequest) -> None:
    descriptor = sys.stdin.fileno() if sys.stdin is not None else 0
    rest = b""
    try:
        while chunk := os.read(descriptor, 4096):
            *lines, rest = (rest[-4096:] + chunk).split(b"\n")
            for line in lines:
                word, _, reason = line.decode("utf-8", "replace").partition(" ")
                if word == "stop":
                    stop.ask(reason or "the supervisor asked for it")
    except OSError:
        pass
    stop.ask("the supervising agent ended")
