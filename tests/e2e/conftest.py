"""An emulator in a process of its own, and the real command line against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TPUDASH = (sys.executable, "-m", "tpudash")


@dataclass
class Terminal:
    """A shell without a screen: runs commands against one endpoint with one state directory."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(
        self, *arguments: str, timeout: float = 60, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `tpudash` with these arguments to its end."""
        return subprocess.run(
            [*TPUDASH, *arguments],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def json(self, *arguments: str, timeout: float = 60) -> dict[str, Any]:
        """Run a command with `--json`, expect success, and return the envelope."""
        done = self.run(*arguments, "--json", timeout=timeout)
        assert done.returncode == 0, f"tpudash {' '.join(arguments)}: {done.stderr}{done.stdout}"
        envelope = json.loads(done.stdout)
        assert isinstance(envelope, dict)
        return envelope

    def items(self, *arguments: str, timeout: float = 60) -> list[dict[str, Any]]:
        """Run a command with `--json` and return its items."""
        items = self.json(*arguments, timeout=timeout)["items"]
        assert isinstance(items, list)
        return items

    def the_run(self, name: str) -> dict[str, Any]:
        """Return one item of `tpudash runs`."""
        (run,) = [item for item in self.items("runs") if item["name"] == name]
        return run

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and return while it runs."""
        return subprocess.Popen(
            [*TPUDASH, *arguments],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@dataclass
class ServedEmulator:
    """`tpudash emulator serve` as a process."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    state_folder: Path
    terminal: Terminal

    @property
    def bucket(self) -> str:
        """The folder that stands in for a bucket."""
        return str(self.state_folder / "bucket")

    def node_processes(self) -> list[psutil.Process]:
        """Return every live process that runs on one of this emulator's nodes."""
        return processes_below(self.state_folder, but=self.process.pid)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the emulator and wait until it and its nodes' processes are gone."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(15)
        wait_until(lambda: not self.node_processes(), within=10, what="node processes are gone")


def processes_below(folder: Path, but: int | None = None) -> list[psutil.Process]:
    """Return live processes whose working directory or environment points below a folder."""
    marker = str(folder)
    found = []
    for process in psutil.process_iter():
        if process.pid in {but, os.getpid()}:
            continue
        try:
            places = (process.cwd(), process.environ().get("TPUDASH_NODE_DIR", ""))
            if process.status() != psutil.STATUS_ZOMBIE and any(
                place.startswith(marker) for place in places
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def clean_environment(folder: Path) -> dict[str, str]:
    """Return an environment in which nothing of this machine's own configuration shows."""
    keep = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in keep if name in os.environ}
    return environment | {
        "HOME": str(folder),
        "USER": "alice",
        "LOGNAME": "alice",
        "TPUDASH_CONFIG_DIR": str(folder / "config"),
        "TPUDASH_STATE_DIR": str(folder / "state"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def serve(folder: Path, state_folder: Path, *options: str) -> ServedEmulator:
    """Start an emulator on a free port and wait until it serves."""
    ready_file = folder / "ready.json"
    ready_file.unlink(missing_ok=True)
    terminal = Terminal(folder, clean_environment(folder))
    process = subprocess.Popen(
        [
            *TPUDASH,
            "emulator",
            "serve",
            "--port",
            "0",
            "--state-dir",
            str(state_folder),
            "--ready-file",
            str(ready_file),
            *options,
        ],
        env=terminal.environment,
        cwd=Path(__file__).parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def is_ready() -> bool:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        return ready_file.exists()

    wait_until(is_ready, within=20, what="the emulator serves")
    ready = json.loads(ready_file.read_text("utf-8"))
    terminal.environment |= {"TPUDASH_ENDPOINT": ready["endpoint"], "TPUDASH_PROJECT": "demo"}
    return ServedEmulator(process, ready, state_folder, terminal)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedEmulator]:
    """An emulator with an empty world, ended after the test."""
    emulator = serve(tmp_path, tmp_path / "emulator")
    try:
        yield emulator
    finally:
        emulator.stop()
