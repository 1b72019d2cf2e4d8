"""A run that serves, on emulated nodes: launched, asked, killed, preempted, resumed, deleted."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.trainer.serve.conftest import export
from tests.waiting import wait_until
from trainer.serve.server import listen

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import ServedEmulator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def free_port() -> int:
    with listen("127.0.0.1", 0) as bound:
        port: int = bound.getsockname()[1]
    return port


def ask(port: int) -> Any:
    """Return what a prediction answers, or None where nobody answers."""
    body = json.dumps({"instances": [[1, 2, 3, 4]]}).encode()
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/v1/models/double:predict", body, timeout=5
        ) as answer:
            return json.load(answer)["predictions"]
    except (urllib.error.URLError, OSError):
        return None


def test_a_served_model_outlives_its_process_and_its_node(
    served: ServedEmulator, tmp_path: Path
) -> None:
    models = tmp_path / "double"
    models.mkdir()
    export(models, 1)
    port, terminal = free_port(), served.terminal
    words = ["--accelerator", "v2-8", "--zone", "us-central1-b", "--bucket", served.bucket]
    launched = terminal.run(
        *("launch", "api", "--serve", str(models), "--port", str(port), *words, "--yes", "--wait"),
        timeout=120,
    )
    assert launched.returncode == 0, launched.stderr
    assert ask(port) == [[2, 4, 6, 8]]

    (server,) = (one for one in served.node_processes() if "trainer.serve" in one.cmdline())
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: ask(port), within=60, what="the agent starts the server again")

    assert terminal.run("emulator", "preempt", "api-1", "--notice", "10s").returncode == 0
    wait_until(lambda: terminal.the_run("api")["state"] == "PREEMPTED", within=40, what="preempted")
    assert ask(port) is None
    export(models, 2, factor=3)
    resumed = terminal.run("resume", "api", "--yes", "--wait", timeout=120)
    assert resumed.returncode == 0, resumed.stderr
    assert ask(port) == [[3, 6, 9, 12]]
    assert terminal.the_run("api")["state"] == "SERVING"
    assert terminal.the_run("api")["cost_per_hour_usd"] > 0

    assert terminal.run("delete", "api", "--yes", "--wait").returncode == 0
    assert ask(port) is None
    assert not [one for one in served.node_processes() if "trainer.serve" in one.cmdline()]
