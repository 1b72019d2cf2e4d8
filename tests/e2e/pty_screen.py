"""A program on a real pseudo-terminal, with its screen read as a person would see it."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import pexpect
import pyte

from tests.waiting import wait_until

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class PtyScreen:
    """Starts a command at a size, draws what it prints, and types keys into it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        columns: int = 80,
        rows: int = 24,
        term: str = "xterm-256color",
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._has_hung_up = threading.Event()
        self.output = bytearray()
        self.child: pexpect.spawn[bytes] = pexpect.spawn(
            command[0],
            list(command[1:]),
            env={**environment, "TERM": term},
            cwd=str(folder),
            dimensions=(rows, columns),
            timeout=None,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(pexpect.EOF, OSError, ValueError):
            while not self._has_hung_up.is_set():
                try:
                    data = self.child.read_nonblocking(65_536, timeout=0.1)
                except pexpect.TIMEOUT:
                    continue
                with self._lock:
                    self.output += data
                    self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """The rows of the screen as text."""
        with self._lock:
            return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The whole screen as text."""
        return "\n".join(self.lines)

    def type(self, keys: str) -> None:
        """Send keys as a terminal would."""
        self.child.send(keys)

    def resize(self, rows: int, columns: int) -> None:
        """Make the terminal so large, which may be nothing at all."""
        self.child.setwinsize(rows, columns)
        with self._lock:
            self._screen.resize(max(1, rows), max(1, columns))

    def wait_for(self, pattern: re.Pattern[str] | str, *, within: float = 20) -> None:
        """Wait until the screen shows a text or matches a pattern."""

        def shows() -> bool:
            text = self.text
            found = pattern in text if isinstance(pattern, str) else bool(pattern.search(text))
            assert found or self.child.isalive(), "the program has ended"
            return found

        try:
            wait_until(shows, within=within, what=f"the screen shows {pattern!r}")
        except AssertionError as error:
            msg = f"{error}\n{self.text}"
            raise AssertionError(msg) from None

    def wait_for_end(self, *, within: float) -> int | None:
        """Wait until the program has ended and return its exit status, or None for a signal."""
        wait_until(lambda: not self.child.isalive(), within=within, what="the program has ended")
        status: int | None = self.child.exitstatus
        return status

    def hang_up(self) -> None:
        """Take the terminal away, as a line does that drops."""
        self._has_hung_up.set()
        self._reader.join()
        self.child.ptyproc.fileobj.close()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Kill the program if it still runs."""
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
            self.wait_for_end(within=20)
        self.child.close()
