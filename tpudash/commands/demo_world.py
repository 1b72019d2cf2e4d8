"""The demo's own emulator: a child process in a folder of its own, gone when we are gone.

The child reads our end of a pipe as its standard input. However this process ends, by `kill -9`
too, the kernel closes the pipe, and the child ends itself and its nodes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from tpudash.config.paths import ensure_writable
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

START_LIMIT_S: Final = 20.0
STOP_LIMIT_S: Final = 3.0
LOOK_EVERY_S: Final = 0.05
METRICS_PERIOD_S: Final = 5
KEPT_OUTPUT: Final = 2_000


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """A local emulator that serves.

    Attributes:
        folder: Everything that belongs to it, and our own state for the length of the demo.
        endpoint: `HOST:PORT`.
        bucket: The folder that stands in for a bucket.
    """

    folder: Path
    endpoint: str
    bucket: str


@contextlib.contextmanager
def demo_world(demos: Path) -> Iterator[DemoWorld]:
    """Serve an emulator for the length of a `with`, in a fresh folder below `demos`.

    Raises:
        ConfigurationError: The folder can't be written to, or the emulator does not start.
    """
    ensure_writable(demos, "state directory")
    clean_up(demos)
    folder = Path(tempfile.mkdtemp(prefix="world-", dir=demos))
    lock = _take(folder)
    try:
        with _serving(folder) as world:
            yield world
    finally:
        _remove(folder)
        lock.close()


def clean_up(demos: Path) -> None:
    """Remove what demos that have ended left behind; one that still runs holds its lock."""
    for folder in demos.glob("world-*"):
        try:
            lock = _take(folder)
        except OSError:
            continue
        _remove(folder)
        lock.close()


def _take(folder: Path) -> IO[str]:
    """Return the folder's lock file, locked for as long as it is open."""
    lock = (folder / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _remove(folder: Path) -> None:
    # A node that is just ending may still write; what is left now is removed by the next demo.
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[DemoWorld]:
    ready_file = folder / "ready.json"
    output = folder / "emulator.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tpudash", "emulator", "serve", "--port", "0"),
                *("--state-dir", str(folder / "emulator"), "--ready-file", str(ready_file)),
                *("--metrics-period", f"{METRICS_PERIOD_S}s", "--exit-with-stdin"),
            ],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=folder,
            env=_environment(),
            # Ctrl-C in our terminal is meant for us; the child ends with the pipe.
            start_new_session=True,
        )
    try:
        ready = _wait_until_ready(process, ready_file, output)
        yield DemoWorld(folder, ready["endpoint"], ready["bucket"])
    finally:
        _stop(process)


def _environment() -> dict[str, str]:
    """Return our environment without what would point the emulator's nodes elsewhere."""
    ours = {"TPUDASH_ENDPOINT", "TPUDASH_PROJECT", "TPUDASH_CONFIG"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def _wait_until_ready(
    process: subprocess.Popen[bytes], ready_file: Path, output: Path
) -> dict[str, Any]:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            ready: dict[str, Any] = json.loads(ready_file.read_text("utf-8"))
            return ready
        time.sleep(LOOK_EVERY_S)
    said = output.read_text("utf-8", "replace")[-KEPT_OUTPUT:].strip()
    raise ConfigurationError(
        "the demo's emulator did not start",
        detail=said or f"it did not answer within {START_LIMIT_S:.0f} s",
        hint="see whether `tpudash emulator serve --state-dir FOLDER` works",
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let the emulator end by itself, and end it if it does not."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    for act in (process.terminate, process.kill):
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            act()
        else:
            return
    process.wait()
