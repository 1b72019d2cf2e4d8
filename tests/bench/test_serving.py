"""The CNN under load: `pytest tests/bench/test_serving.py -s`, on an idle machine; a minute.

Goal: 4,000 requests/s at a 99th percentile of 20 ms with 32 clients on 2 cores, which the clients
share. The best of five rounds counts: what a neighbour takes away is not the server's doing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.unit.trainer.node import REPOSITORY
from tests.unit.trainer.serve.test_server import Serving
from trainer.data.embedded import read_embedded

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.trains, pytest.mark.timeout(300)]

SECONDS = 4
ROUNDS = 5


def train(folder: Path) -> None:
    """Train the CNN for a moment; how well does not matter for its speed."""
    flags = ["--tpu", "none", "--steps", "20", "--batch_size", "64", "--model_dir", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "trainer", *flags],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )


def one_round(server: psutil.Process, port: int, body: Path, clients: int) -> dict[str, Any]:
    """Load the server for some seconds, and return what the clients saw and both sides cost."""
    before = server.cpu_times()
    words = [str(port), "/v1/models/cnn:predict", str(body), str(clients), str(SECONDS)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.http_load", *words],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
        timeout=10 * SECONDS,
    )
    after = server.cpu_times()
    found: dict[str, Any] = json.loads(done.stdout)
    spent = after.user + after.system - before.user - before.system
    found["server_cpu_us"] = 1e6 * spent / (found["requests_per_second"] * SECONDS)
    return found


def test_the_cnn_answers_fast_enough(tmp_path: Path) -> None:
    folder = tmp_path / "cnn"
    train(folder)
    images, _ = read_embedded()
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"instances": [images[0].reshape(28, 28, 1).tolist()]}))
    serving = Serving(folder, tmp_path / "events", "--report_seconds", "0")
    try:
        port = serving.wait_event("start")["port"]
        serving.wait_event("ready")
        server = psutil.Process(serving.process.pid)
        print(f"\n{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
        rounds = []
        for clients in (1, 8, *[32] * ROUNDS, 64):
            found = one_round(server, port, body, clients)
            print(f"{clients:>3} clients:", {key: round(value, 1) for key, value in found.items()})
            assert found["failed"] == 0
            if clients == 32:
                rounds.append(found)
        print(f"resident memory {server.memory_info().rss / 2**20:.0f} MiB")
    finally:
        serving.process.send_signal(signal.SIGTERM)
        assert serving.process.wait(20) == 0
    best = max(rounds, key=lambda one: one["requests_per_second"])
    assert best["requests_per_second"] >= 4_000
    assert min(one["p99_ms"] for one in rounds) <= 20
