"""`python -m trainer validate` against a bucket, by TensorFlow's own gs:// code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.storage_server import BUCKET, StorageServer
from tests.e2e.test_trainer_resume import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.trains, pytest.mark.timeout(240)]


def _validate(storage: StorageServer) -> tuple[int, dict[str, dict[str, Any]], str]:
    arguments = ["--tpu", "none", "--model_dir", f"gs://{BUCKET}/runs/demo", "--batch_size", "32"]
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "validate", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **storage.environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    checks = {event["check"]: event for event in events if event["event"] == "check"}
    return done.returncode, checks, done.stderr


def test_bucket_is_written_read_and_left_as_it_was(tmp_path: Path) -> None:
    storage = StorageServer(tmp_path)
    storage["runs/demo/checkpoints/ckpt-5.index"] = b"of a run that goes on"
    try:
        code, checks, stderr = _validate(storage)
        assert code == 0, stderr
        assert {each["verdict"] for each in checks.values()} <= {"ok", "warning"}
        assert checks["checkpoint_write"]["bytes"] > 10**6
        assert set(storage) == {"runs/demo/checkpoints/ckpt-5.index"}
        storage.refuse_writes()
        code, checks, stderr = _validate(storage)
    finally:
        storage.close()
    assert code == 70
    assert checks["step"]["verdict"] == "ok"
    assert checks["checkpoint_write"]["verdict"] == "failed"
    assert checks["checkpoint_write"]["class"] == "BUCKET_ACCESS"
    assert "objectAdmin" in checks["checkpoint_write"]["hint"]
    assert checks["export"]["verdict"] == "skipped"
