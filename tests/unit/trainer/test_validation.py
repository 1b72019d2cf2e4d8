"""`python -m trainer validate`: each check a figure and a verdict, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trainer.jobs import run_job, write_examples
from trainer.events import EventWriter
from trainer.faults import ExitCode, TrainerError
from trainer.validation import CHECKS, Outcome, Report

pytestmark = [pytest.mark.slow, pytest.mark.trains]

REPOSITORY = Path(__file__).parents[3]


def validate(*arguments: object) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any], str]:
    """Run the command. Returns exit code, `check` events by name, the last event, and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "validate", "--tpu", "none", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    checks = {event["check"]: event for event in events if event["event"] == "check"}
    return done.returncode, checks, events[-1], done.stderr


def test_everything_is_checked_and_nothing_left(tmp_path: Path) -> None:
    run_job(tmp_path / "run", steps=4)
    before = sorted(path for path in (tmp_path / "run").rglob("*"))
    flags = ["--precision", "float32", "--batch_size", 64, "--cpu_replicas", 2, "--events", "none"]
    code, checks, last, stderr = validate("--model_dir", tmp_path / "run", *flags)
    assert code == 0, stderr
    assert tuple(checks) == CHECKS
    for name, check in checks.items():
        assert check["verdict"] in ("ok", "warning"), check
        assert check["value"] > 0, name
        assert check["unit"]
        assert check["seconds"] >= 0
    assert checks["devices"]["value"] == 2
    assert checks["input"]["examples"] == 4000
    assert checks["step"]["loss"] < 2.3
    assert checks["checkpoint_write"]["bytes"] > 10**6
    assert (last["event"], last["verdict"]) == ("validate", "ok")
    assert last["seconds"] < 60
    assert sorted(path for path in (tmp_path / "run").rglob("*")) == before


def test_bad_input_fails_its_check_and_skips_the_rest(tmp_path: Path) -> None:
    write_examples(tmp_path / "bad", [bytes(784)] * 99, [11] * 99)
    files = ["--train_files", tmp_path / "bad", "--eval_files", tmp_path / "bad"]
    code, checks, last, stderr = validate(
        "--model_dir", tmp_path / "run", "--batch_size", 16, *files
    )
    assert code == ExitCode.NO_INPUT
    verdicts = {name: check["verdict"] for name, check in checks.items()}
    assert verdicts["devices"] == "ok"
    assert verdicts["input"] == "failed"
    assert {verdicts[name] for name in CHECKS[3:]} == {"skipped"}
    assert "a label is not in 0 to 9 but 11" in checks["input"]["detail"]
    assert checks["input"]["hint"]
    assert last["verdict"] == "failed"
    assert "input: BAD_REQUEST" in stderr


def test_wrong_flags_end_64_without_checks() -> None:
    code, checks, last, _ = validate("--model_dir", "/m", "--batch_size", 0)
    assert (code, checks, last["event"]) == (64, {}, "error")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Return a report whose events go to a file."""
    null = os.open(os.devnull, os.O_WRONLY)
    return Report(EventWriter(run="r", attempt=1, stdout=null, file=tmp_path / "events"))


def test_unexpected_error_is_a_failed_check(report: Report) -> None:
    def breaks() -> Outcome:
        raise RuntimeError("Ran out of memory in memory space hbm")

    report.run("step", breaks)
    assert report.verdicts == {"step": "failed"}
    assert report.exit_code == ExitCode.DEFECT


def test_what_cannot_be_removed_is_told_and_the_sum_still_comes(
    report: Report, tmp_path: Path
) -> None:
    def refused() -> None:
        raise TrainerError(
            ExitCode.DEFECT, "BUCKET_ACCESS", "cannot remove gs://b/v", "give a role"
        )

    report.tidy(refused)
    report.close()
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [event["event"] for event in events] == ["warning", "validate"]
    assert events[0]["message"] == "cannot remove gs://b/v (give a role)"


def test_storage_that_loses_bytes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainer.checkpoints import Checkpoints
    from trainer.config import parse
    from trainer.validation_checks import Rehearsal

    flags = f"--model_dir {tmp_path} --tpu none --precision float32 --batch_size 16"
    rehearsal = Rehearsal(parse(flags.split()), None)
    saved = Checkpoints.save

    def lossy(self: Checkpoints, step: int, extra: Any = None) -> Any:
        result = saved(self, step, extra)
        (data,) = tmp_path.glob("validate-*/checkpoints/ckpt-1.data*")
        os.truncate(data, 1000)
        return result

    monkeypatch.setattr(Checkpoints, "save", lossy)
    monkeypatch.setattr("trainer.validation_checks._BUDGET_S", 0.01)
    try:
        for name in CHECKS[1:5]:
            getattr(rehearsal, name)()
        with pytest.raises(TrainerError) as caught:
            rehearsal.checkpoint_read()
    finally:
        rehearsal.clean_up()
    assert caught.value.error_class == "CKPT_INCOMPLETE"
    assert not list(tmp_path.glob("validate-*"))
