"""A program on a pseudo-terminal, watched with a stop-watch: bytes, processor time, latencies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ASKS_FOR_SYNC: Final = b"\x1b[?2026$p"
ANSWERS_SYNC: Final = b"\x1b[?2026;2$y"
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Span:
    """What happened in a length of time."""

    seconds: float
    bytes: int
    cpu_seconds: float

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds

    @property
    def cpu_percent(self) -> float:
        """Share of one core."""
        return 100 * self.cpu_seconds / self.seconds


class Terminal:
    """Runs a command as the only one on a terminal that answers like a modern one."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        columns: int = 120,
        rows: int = 40,
    ) -> None:
        self.output = bytearray()
        self.began = time.perf_counter()
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(1, termios.TIOCSWINSZ, size)
            os.execve(command[0], list(command), dict(environment))
        # Set here too: the child's own setting may come after its first look.
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout: float) -> bytes:
        """Return what is there, after waiting at most so long; b"" when nothing came."""
        ready, _, _ = select.select([self.file], [], [], max(0.0, timeout))
        if not ready:
            return b""
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:
            return b""
        if ASKS_FOR_SYNC in data:
            os.write(self.file, ANSWERS_SYNC)
        self.output += data
        return data

    def wait_for(self, marker: bytes, within: float = 30) -> float:
        """Read until a text was printed; returns seconds since the program was started."""
        deadline = time.perf_counter() + within
        while marker not in self.output:
            if time.perf_counter() > deadline:
                raise AssertionError(f"never printed {marker!r}: {bytes(self.output[-400:])!r}")
            self.read(0.2)
        return time.perf_counter() - self.began

    def settle(self, quiet: float = 0.5, within: float = 20) -> None:
        """Read until nothing came for a while."""
        deadline = time.perf_counter() + within
        while time.perf_counter() < deadline and self.read(quiet):
            pass

    def watch(self, seconds: float) -> Span:
        """Measure what happens by itself in so many seconds."""
        cpu, began, count = self.cpu_seconds, time.perf_counter(), 0
        while (left := began + seconds - time.perf_counter()) > 0:
            count += len(self.read(left))
        return Span(time.perf_counter() - began, count, self.cpu_seconds - cpu)

    def key(self, keys: bytes, within: float = 2) -> tuple[float, int]:
        """Press keys; returns seconds until the first byte, and all bytes of the answer."""
        began = time.perf_counter()
        os.write(self.file, keys)
        first = b""
        while not first and time.perf_counter() - began < within:
            first = self.read(within)
        latency = time.perf_counter() - began
        count = len(first)
        while data := self.read(0.06):
            count += len(data)
        return latency, count

    @property
    def cpu_seconds(self) -> float:
        """Processor time so far, of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def wait_for_end(self, within: float = 10) -> float:
        """Return seconds until the process has ended."""
        began = time.perf_counter()
        while time.perf_counter() - began < within:
            self.read(0.002)
            with contextlib.suppress(ChildProcessError):
                done, _ = os.waitpid(self.pid, os.WNOHANG)
                if done == self.pid:
                    self.pid = 0
                    return time.perf_counter() - began
        raise AssertionError("it still runs")

    def close(self) -> None:
        """Kill the program if it still runs."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        os.close(self.file)
