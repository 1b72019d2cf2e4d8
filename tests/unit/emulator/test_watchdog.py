"""The watchdog by itself: nothing outlives the pipe, with the system's help and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tpudash.emulator.machines import watchdog
from tpudash.emulator.machines.leftovers import processes_of

PYTHON = "import time; time.sleep(600)"
SCRIPT = f"""
trap '' TERM HUP
(setsid "$PY" -c '{PYTHON}' &)
"$PY" -c '{PYTHON}' &
echo started
"$PY" -c '{PYTHON}'
"""


@pytest.mark.parametrize("helped", [True, False], ids=["as on this system", "as without subreaper"])
def test_the_end_of_the_pipe_kills_the_tree(tmp_path: Path, helped: bool) -> None:
    directory = tmp_path / "w0"
    directory.mkdir()
    config = {
        "command": ["bash", "-c", SCRIPT],
        "directory": str(directory),
        "environment": {**os.environ, "PY": sys.executable, "TPUDASH_NODE_DIR": str(directory)},
        "console": str(directory / "console.log"),
        "console_limit": 10_000,
    }
    program = Path(watchdog.__file__).read_text()
    if not helped:
        program = program.replace('LINUX = sys.platform.startswith("linux")', "LINUX = False")
        assert "LINUX = False" in program
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program, json.dumps(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"started")
        wait_until(lambda: len(list(processes_of(directory))) >= 3, within=10, what="all run")
        process.stdin.close()
        assert process.wait(10) == 0
    assert not list(processes_of(directory))


def test_a_stop_that_is_obeyed_needs_no_force(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    config = {
        "command": ["bash", "-c", "trap 'echo noticed; exit 3' TERM; echo armed; sleep 600; true"],
        "directory": str(tmp_path),
        "environment": {**os.environ, "TPUDASH_NODE_DIR": str(tmp_path)},
        "console": str(console),
        "console_limit": 10_000,
    }
    with subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__, json.dumps(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        wait_until(
            lambda: console.exists() and "armed" in console.read_text(), within=10, what="armed"
        )
        process.stdin.write(b"TERM\n")
        process.stdin.flush()
        code = process.wait(10)
        assert code == 0
        assert process.stdout is not None
        assert b"exited 3" in process.stdout.read()
    assert "noticed" in console.read_text()
