"""Damaged and unfitting input: one line that names the file, exit code 66, no checkpoint harmed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.trainer.jobs import run_job, write_digits, write_examples
from trainer.config import parse
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.trains]

IMAGES = np.zeros((20, 28, 28, 1), np.uint8)
LABELS = [number % 10 for number in range(20)]


def cut(path: Path) -> None:
    """Cut the file within its last record."""
    write_examples(path, IMAGES, LABELS)
    os.truncate(path, path.stat().st_size - 100)


def flip(path: Path, record: int = 10, offset: int = 100) -> None:
    """Turn over a byte in the middle of the data."""
    write_examples(path, IMAGES, LABELS)
    content = bytearray(path.read_bytes())
    content[len(content) // len(LABELS) * record + offset] ^= 255
    path.write_bytes(content)


def flip_length(path: Path) -> None:
    """Turn over a byte of the length of a record."""
    flip(path, offset=1)


def empty(path: Path) -> None:
    """Leave nothing."""
    path.write_bytes(b"")


def other_shape(path: Path) -> None:
    """Let a later image be of another size."""
    write_examples(path, [*[bytes(784)] * 19, bytes(700)], LABELS)


def high_label(path: Path) -> None:
    """Let a label be out of range."""
    write_examples(path, IMAGES, [*LABELS[:-1], 10])


def negative_label(path: Path) -> None:
    """Let a label be negative."""
    write_examples(path, IMAGES, [*LABELS[:-1], -1])


def other_features(path: Path) -> None:
    """Write records of other features."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        value = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
        features = tf.train.Features(feature={"age": value})
        writer.write(tf.train.Example(features=features).SerializeToString())


def no_example(path: Path) -> None:
    """Write records that are no examples."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\xff\xff hello")


DAMAGES: list[tuple[Callable[[Path], None], str]] = [
    (cut, "cut short"),
    (flip, "corrupted record"),
    (flip_length, "record 10 at byte 8380 is a corrupted record: its length"),
    (empty, "no records"),
    (other_shape, "not of 784 bytes but 700"),
    (high_label, "a label is not in 0 to 9 but 10"),
    (negative_label, "a label is not in 0 to 9 but -1"),
    (other_features, "the record has the features age"),
    (no_example, "not a tf.train.Example"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_damaged_file_is_named(tmp_path: Path, damage: Callable[[Path], None], said: str) -> None:
    from trainer.data.loading import load

    damage(tmp_path / "bad")
    files = f"--train_files {tmp_path}/bad --eval_files {tmp_path}/bad"
    with pytest.raises(TrainerError) as caught:
        load(parse(f"--model_dir /nowhere --batch_size 4 {files}".split()))
    assert caught.value.exit_code == ExitCode.NO_INPUT
    assert f"{tmp_path}/bad" in caught.value.detail
    assert said in caught.value.detail
    assert "\n" not in caught.value.detail
    assert len(caught.value.detail) < 400
    assert caught.value.hint


@pytest.mark.parametrize(
    ("damage", "said"), [(flip, "train-1: corrupted record"), (high_label, "a label is not in")]
)
def test_damage_met_while_training_stops_with_the_checkpoints_whole(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    files = write_digits(tmp_path / "data").split()
    flags = [*files, "--memory_mb", "0", "--call_seconds", "0.01"]
    run_job(tmp_path / "run", *flags, steps=2)
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    (tmp_path / "data" / "train-1").unlink()
    damage(tmp_path / "data" / "train-1")
    with pytest.raises(TrainerError) as caught:
        run_job(tmp_path / "run", *flags, steps=40, every=50)
    assert caught.value.exit_code == ExitCode.NO_INPUT
    assert said in caught.value.detail
    assert "the last good checkpoint is ckpt-2" in caught.value.detail
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == before


def test_one_empty_file_among_others_is_a_warning(tmp_path: Path) -> None:
    from trainer.data.loading import load

    files = write_digits(tmp_path)
    (tmp_path / "train-9").write_bytes(b"")
    warnings: list[str] = []
    settings = parse(f"--model_dir /nowhere --batch_size 8 {files}".split())
    training, _ = load(settings, warn=warnings.append)
    assert training.examples == 120
    assert len(warnings) == 1
    assert "train-9" in warnings[0]


def test_mixed_compression_is_refused(tmp_path: Path) -> None:
    from trainer.data.loading import load

    files = write_digits(tmp_path)
    write_examples(tmp_path / "train-9.gz", IMAGES, LABELS)
    with pytest.raises(TrainerError) as caught:
        load(parse(f"--model_dir /nowhere {files}".split()))
    assert "is not compressed, but" in caught.value.detail


def test_too_few_files_for_the_hosts(tmp_path: Path) -> None:
    from trainer.data.loading import load

    settings = parse(f"--model_dir /nowhere --batch_size 8 {write_digits(tmp_path)}".split())
    with pytest.raises(TrainerError) as caught:
        load(settings, hosts=4)
    assert "3 training files cannot be shared by 4 hosts" in caught.value.detail
    assert "--shards" in caught.value.hint


def test_full_disk_between_checkpoint_and_its_metadata_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    from trainer.checkpoint_files import CheckpointFolder

    run_job(tmp_path / "run", steps=4)
    folder = tmp_path / "run" / "checkpoints"
    before = {path.name for path in folder.glob("ckpt-*.index")}

    def full(*_: object, **__: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "x; No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "describe", full)
        with pytest.raises(TrainerError) as caught:
            run_job(tmp_path / "run", steps=8)
    assert caught.value.error_class == "BUCKET_ACCESS"
    assert "free space" in caught.value.hint
    assert before <= {path.name for path in folder.glob("ckpt-*.index")}
    _, events = run_job(tmp_path / "run", steps=8)
    assert events["finish"][0]["step"] == 8
