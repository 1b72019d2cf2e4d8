"""Runs one worker's startup script and sees to it that nothing of it outlives the emulator.

A program of its own (standard library only): `python -I -S watchdog.py CONFIG_JSON`. Its standard
input is a pipe from the emulator. A line TERM asks every process of the worker to end; a line KILL
kills them; the end of the pipe, which the kernel brings about however the emulator dies, kills
them too. It leaves when it was told to stop and no process is left.

On Linux it is the "child subreaper" of the worker, so every descendant stays below it whatever
sessions or groups it makes. Elsewhere descendants are looked up and remembered once a second,
and who broke away in between is found by the mark that the worker's environment carries.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

LINUX = sys.platform.startswith("linux")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WATCH_S = 1.0
_STOPPING_S = 0.05
_CHUNK = 65_536
_MARK = "TPUDASH_NODE_DIR"


def list_processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the start mark of every living process, by process id."""
    return _list_proc() if LINUX else _list_ps()


def _list_proc() -> dict[int, tuple[int, str]]:
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  (pathlib would double the cost of a scan)
        if not name.isdecimal():
            continue
        with suppress(OSError):
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in {b"Z", b"X"}:
                found[int(name)] = (int(fields[1]), fields[19].decode())
    return found


def _list_ps() -> dict[int, tuple[int, str]]:
    command = ["ps", "-axo", "pid=,ppid=,stat=,lstart="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lister:
        output, _ = lister.communicate()
    found = {}
    for line in output.splitlines():
        pid, parent, state, *start = line.split()
        if not state.startswith("Z") and int(pid) != lister.pid:
            found[int(pid)] = (int(parent), " ".join(start))
    return found


def list_marked(mark: str) -> set[int]:
    """Return the processes whose environment holds `mark`, as far as `ps` shows environments.

    macOS hides those of its own programs (/bin, /usr/bin), not those of an installed Python.
    """
    flags = "-axEww" if sys.platform == "darwin" else "axeww"
    command = ["ps", flags, "-o", "pid=,command="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as lister:
        output, _ = lister.communicate()
    found = set()
    for line in output.splitlines():
        pid, _, rest = line.strip().partition(" ")
        if f" {mark} " in f"{rest} " and int(pid) != lister.pid:
            found.add(int(pid))
    return found


class Console:
    """The console file: when it is full, it becomes `.1` and a new one begins."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self.chunk = min(_CHUNK, limit)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115, PTH123  (open for life)

    def write(self, data: bytes) -> None:
        """Append what the worker printed; a full disk loses it and nothing else."""
        with suppress(OSError):
            if self._file.tell() + len(data) > self._limit:
                self._file.close()
                os.replace(self._path, self._path + ".1")  # noqa: PTH105
                self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115, PTH123
            self._file.write(data)


class Watchdog:
    """One worker's processes."""

    def __init__(self, config: dict[str, object]) -> None:
        self._me = os.getpid()
        self._known: dict[int, str] = {}
        self._stopping = False
        self._killing = False
        self._console = Console(str(config["console"]), int(str(config["console_limit"])))
        self._output, output_end = os.pipe()
        command = config["command"]
        environment = config["environment"]
        if not isinstance(command, list) or not isinstance(environment, dict):
            raise TypeError("config: command must be a list and environment an object")
        self._mark = f"{_MARK}={environment.get(_MARK, '')}"
        self._prctl = ctypes.CDLL(None).prctl if LINUX else None
        if self._prctl is not None:
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._script = subprocess.Popen(
            command,
            cwd=str(config["directory"]),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output_end,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=self._prepare_child,  # noqa: PLW1509  (this program has one thread)
        )
        os.close(output_end)
        self._say(f"started {self._script.pid}")

    def _prepare_child(self) -> None:
        os.nice(10)
        if self._prctl is not None:
            self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    @staticmethod
    def _say(text: str) -> None:
        with suppress(OSError):
            os.write(1, text.encode() + b"\n")

    def tree(self) -> list[int]:
        """Return the worker's living processes, and remember them."""
        processes = list_processes()
        children: dict[int, list[int]] = {}
        for pid, (parent, _) in processes.items():
            children.setdefault(parent, []).append(pid)
        pending = [self._me]
        pending += [
            pid for pid, mark in self._known.items() if processes.get(pid, (0, ""))[1] == mark
        ]
        if self._stopping and not LINUX:
            pending += list_marked(self._mark)
        found: set[int] = set()
        while pending:
            pid = pending.pop()
            if pid not in found:
                found.add(pid)
                pending.extend(children.get(pid, ()))
        found.discard(self._me)
        self._known = {pid: processes[pid][1] for pid in found if pid in processes}
        return list(self._known)

    def signal_all(self, number: int) -> None:
        """Send a signal to every process of the worker."""
        for pid in self.tree():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def reap(self) -> None:
        """Collect dead descendants, and report the end of the script once."""
        if self._script.returncode is None and self._script.poll() is not None:
            self._say(f"exited {self._script.returncode}")
        while LINUX:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid == self._script.pid:
                return  # the script's own end is collected above, at the next turn
            os.waitpid(ended.si_pid, 0)

    def run(self) -> None:
        """Serve until told to stop and nothing is left."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._begin_kill())
        sources = [0, wake_read, self._output]
        idle: float | None = None if LINUX else _WATCH_S
        while True:
            ready, _, _ = select.select(sources, [], [], _STOPPING_S if self._stopping else idle)
            if wake_read in ready:
                os.read(wake_read, _CHUNK)
            if 0 in ready and not self._obey(os.read(0, _CHUNK)):
                sources.remove(0)
            if self._output in ready:
                data = os.read(self._output, self._console.chunk)
                if data:
                    self._console.write(data)
                else:
                    sources.remove(self._output)
            self.reap()
            if self._stopping:
                if self._killing:
                    self.signal_all(signal.SIGKILL)
                if not self.tree():
                    self.reap()
                    self._drain()
                    return
            elif not LINUX:
                self.tree()

    def _drain(self) -> None:
        """Keep the last words: what was printed and not read yet."""
        os.set_blocking(self._output, False)
        with suppress(BlockingIOError):
            while data := os.read(self._output, self._console.chunk):
                self._console.write(data)

    def _obey(self, data: bytes) -> bool:
        """Carry out what the emulator says; return whether it still lives."""
        if not data or b"KILL" in data:
            self._begin_kill()
        elif b"TERM" in data and not self._stopping:
            self._stopping = True
            self.signal_all(signal.SIGTERM)
        return bool(data)

    def _begin_kill(self) -> None:
        self._stopping = self._killing = True
        self.signal_all(signal.SIGKILL)


def main() -> None:
    """Run the worker that the first argument describes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    watchdog = Watchdog(json.loads(sys.argv[1]))
    watchdog.run()


if __name__ == "__main__":
    main()
