"""Settings: flags, checks, and that they are checked before TensorFlow is imported."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.trainer.node import REPOSITORY
from trainer.config import Config, batch_advice, cores, make_parser, parse
from trainer.data.places import local_files
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_TENSORFLOW = """
import sys
from trainer.main import main
code = main(sys.argv[1:])
assert not {"tensorflow", "keras", "numpy"} & set(sys.modules), "imported too early"
sys.exit(code)
"""


def run_early(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the trainer in a process that must end before TensorFlow is imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_each_setting_is_an_explained_flag() -> None:
    text = make_parser().format_help()
    for field in dataclasses.fields(Config):
        assert f"--{field.name} " in text or f"--{field.name}\n" in text
        assert field.metadata["help"]


def test_flags_of_the_guide() -> None:
    arguments = "--tpu none --model_dir /m --batch_size 1024 --num_epochs 50"
    config = parse(arguments.split())
    assert (config.tpu, config.model_dir) == ("none", "/m")
    assert (config.batch_size, config.num_epochs, config.steps) == (1024, 50, 0)
    assert config.embedded


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "--model_dir is missing"),
        ("--model_dir s3://b/x", "neither a folder nor a gs:// URL"),
        ("--model_dir gs://", "names no bucket"),
        ("--model_dir gs:///runs/a", "names no bucket"),
        ("--model_dir /m --batch_size 0", "--batch_size 0 is out of range"),
        ("--model_dir /m --batch_size 5000", "more than the 4000"),
        ("--model_dir /m --batch_size x", "invalid int value"),
        ("--model_dir /m --steps -1", "--steps -1 is out of range"),
        ("--model_dir /m --learning_rate 0", "is out of range"),
        ("--model_dir /m --learning_rate nan", "is out of range"),
        ("--model_dir /m --seed -3", "--seed -3 is out of range"),
        ("--model_dir /m --precision float16", "invalid choice"),
        ("--model_dir /m --call_seconds 9", "--call_seconds 9.0 is out of range"),
        ("--model_dir /m --checkpoint_every 0 --checkpoint_seconds 0", "leave no checkpoint"),
        ("--model_dir /m --train_files a.tfrecord", "belong together"),
        ("--model_dir /m --cpu_replicas 3", "cannot be split over 3"),
        ("--model_dir /m --tpu local --accelerator_type v2-8 --batch_size 100", "over 8 cores"),
        ("--model_dir /m --accumulate 3", "cannot be accumulated in 3 parts"),
        ("--model_dir /m --early_stop 2", "needs --eval_every"),
        ("--model_dir /m --profile 5", "is not START:STEPS"),
        ("--model_dir /m --warmup_steps 9 --steps 9", "leaves nothing of --steps"),
        ("--model_dir /m --final_rate 2", "is no share"),
        ("--model_dir /m --model resnet50", "cannot learn the embedded digits"),
        ("--model_dir /m --image_size 32", "are 28 x 28 pixels"),
        ("--model_dir /m --model resnet50 --synthetic 500 --image_size 16", "does not suit"),
        ("--model_dir /m --synthetic 100", "more than the 100 synthetic"),
        ("--model_dir /m --schedule step", "invalid choice"),
        ("--model_dir /m --unknown 1", "unrecognized arguments"),
        ("--model_dir /m --step 1", "unrecognized arguments"),
    ],
)
def test_wrong_setting_is_named(arguments: str, said: str) -> None:
    with pytest.raises(TrainerError, match=None) as caught:
        parse(arguments.split())
    assert said in caught.value.detail
    assert caught.value.exit_code == ExitCode.BAD_ARGUMENTS
    assert caught.value.hint


def test_missing_input_files_are_named(tmp_path: Path) -> None:
    files = ["--train_files", f"{tmp_path}/t-*", "--eval_files", f"{tmp_path}/e"]
    with pytest.raises(TrainerError) as caught:
        parse(["--model_dir", "/m", *files])
    assert caught.value.exit_code == ExitCode.NO_INPUT
    assert "t-*: no such file" in caught.value.detail


def test_bad_argument_ends_64_before_tensorflow() -> None:
    done = run_early("--model_dir", "/m", "--batch_size", "-1", "--run", "demo", "--attempt", "3")
    assert done.returncode == 64, done.stderr
    (line,) = done.stdout.splitlines()
    event = json.loads(line)
    assert (event["event"], event["class"]) == ("error", "BAD_REQUEST")
    assert (event["run"], event["attempt"], event["severity"]) == ("demo", 3, "ERROR")
    assert done.stderr.count("\n") == 1
    assert "--batch_size -1 is out of range" in done.stderr


def test_unwritable_model_dir_ends_64_before_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_early("--model_dir", str(tmp_path / "file" / "run"))
    assert done.returncode == 64, done.stderr
    assert json.loads(done.stdout)["class"] == "BUCKET_ACCESS"


def test_tpu_without_tpu_packages_ends_69_before_tensorflow(tmp_path: Path) -> None:
    program = WITHOUT_TENSORFLOW.replace(
        "code = main",
        "import trainer.versions as v\n"
        "v.preflight.__kwdefaults__['version'] = {'tensorflow-cpu': '2.21.0'}.get\ncode = main",
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--model_dir", str(tmp_path), "--tpu", "local"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 69, done.stderr
    assert "no TPU support" in done.stderr


@pytest.mark.parametrize(
    ("kind", "count"),
    [("v2-8", 8), ("v3-32", 32), ("v4-8", 4), ("v5litepod-4", 4), ("v6e-8", 8), ("", None)],
)
def test_cores(kind: str, count: int | None) -> None:
    assert cores(kind) == count


def test_batch_advice() -> None:
    assert batch_advice(1024, "v2-8") == []
    assert batch_advice(128, "") == []
    (advice,) = batch_advice(256, "v2-8")
    assert "32 a core" in advice
    assert "1024" in advice
    (uneven,) = batch_advice(100, "v2-8")
    assert "cannot be split evenly" in uneven


def test_sigterm_during_the_import_ends_75_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "trainer", "--model_dir", str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line).get("stage") == "import":
            break
    process.send_signal(signal.SIGTERM)
    (last,) = process.stdout
    assert process.wait(30) == 75
    assert json.loads(last)["event"] == "preempt"
    assert json.loads(last)["step"] is None


def test_files_are_taken_by_their_own_name_before_it_is_a_pattern(tmp_path: Path) -> None:
    odd, plain = tmp_path / "part [1],ü.tfrecord", tmp_path / "b.tfrecord"
    odd.touch()
    plain.touch()
    config = parse(
        ["--model_dir", "/m", "--eval_files", f"{plain},{plain}", "--train_files", str(odd)]
    )
    assert config.train_files == (str(odd),)
    assert config.eval_files == (str(plain), str(plain))
    (tmp_path / "folder.tfrecord").mkdir()
    assert local_files(f"{tmp_path}/*.tfrecord", "--x") == [str(plain), str(odd)]
    with pytest.raises(TrainerError, match="is a folder") as caught:
        parse(["--model_dir", "/m", "--train_files", str(tmp_path), "--eval_files", str(plain)])
    assert caught.value.exit_code == ExitCode.NO_INPUT
