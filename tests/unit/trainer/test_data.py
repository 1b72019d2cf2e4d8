"""Order and form of the data, with TensorFlow in this process."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trainer.config import parse
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.trains


def config(*arguments: str) -> Any:
    """Return settings for a run that is never written."""
    return parse(["--model_dir", "/nowhere", *arguments])


def labels_of(dataset: Any) -> list[list[int]]:
    """Return the labels of each batch."""
    return [batch[1].numpy().tolist() for batch in dataset]


def test_embedded_digits_are_split_evenly() -> None:
    from trainer.data.loading import load

    training, evaluation = load(config("--batch_size", "100"))
    assert (training.examples, training.steps_per_epoch) == (4000, 40)
    assert np.bincount(evaluation.labels).tolist() == [100] * 10
    (batch, *_) = list(training.batches(0, 1))
    assert batch[0].shape == (100, 28, 28, 1)
    assert batch[0].dtype.name == "uint8"
    assert 20 < float(batch[0].numpy().mean()) < 50


def test_order_is_a_function_of_seed_epoch_and_step() -> None:
    from trainer.data.loading import load

    training, _ = load(config("--batch_size", "500", "--seed", "3"))
    straight = labels_of(training.batches(0, 20))
    assert len(straight) == 20
    for first in (1, 7, 8, 13):
        assert labels_of(training.batches(first, 20)) == straight[first:]
    epochs = [list(chain(*straight[begin : begin + 8])) for begin in (0, 8)]
    assert epochs[0] != epochs[1], "each epoch has its own order"
    assert sorted(epochs[0]) == sorted(epochs[1]), "each epoch sees each example once"
    other, _ = load(config("--batch_size", "500", "--seed", "4"))
    assert labels_of(other.batches(0, 1)) != straight[:1]


def test_held_out_is_padded_with_weight_zero() -> None:
    from trainer.data.loading import load

    _, evaluation = load(config())
    batches = list(evaluation.batches(300))
    assert [len(batch[1]) for batch in batches] == [300] * 4
    assert sum(float(batch[2].sum()) for batch in batches) == 1000


def write_records(path: Path, form: str, count: int, first: int = 0) -> None:
    """Write TFRecords of images whose every pixel is their number."""
    import tensorflow as tf

    options = tf.io.TFRecordOptions(compression_type="GZIP" if path.suffix == ".gz" else "")
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for number in range(first, first + count):
            image = np.full((28, 28, 1), number, np.uint8)
            if form == "raw":
                value = {"bytes_list": tf.train.BytesList(value=[image.tobytes()])}
            elif form == "png":
                encoded = tf.io.encode_png(image).numpy()
                value = {"bytes_list": tf.train.BytesList(value=[encoded])}
            else:
                pixels = (image / 255.0).ravel().tolist()
                value = {"float_list": tf.train.FloatList(value=pixels)}
            features = {
                "image": tf.train.Feature(**value),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 10])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


@pytest.mark.parametrize(("form", "suffix"), [("raw", ""), ("png", ""), ("float", ".gz")])
def test_tfrecords_of_each_form(tmp_path: Path, form: str, suffix: str) -> None:
    from trainer.data.loading import load

    for part in (0, 1):
        write_records(tmp_path / f"train-{part}{suffix}", form, 20, 20 * part)
    write_records(tmp_path / f"eval{suffix}", form, 7)
    files = f"--train_files {tmp_path}/train-* --eval_files {tmp_path}/eval{suffix}".split()
    training, evaluation = load(config(*files, "--batch_size", "8"))
    assert (training.examples, training.steps_per_epoch) == (40, 5)
    assert evaluation.images[:, 0, 0, 0].tolist() == list(range(7))
    batches = list(training.batches(0, 5))
    seen = sorted(int(image[0, 0, 0]) for images, _ in batches for image in images.numpy())
    assert seen == list(range(40))
    for images, labels in batches:
        assert (images.numpy()[:, 0, 0, 0] % 10).tolist() == labels.numpy().tolist()


def test_streamed_records_resume_exactly(tmp_path: Path) -> None:
    from trainer.data.loading import load
    from trainer.data.streamed import StreamedData

    for part in range(3):
        write_records(tmp_path / f"train-{part}", "raw", 16, 16 * part)
    files = f"--train_files {tmp_path}/train-* --eval_files {tmp_path}/train-0".split()
    settings = config(*files, "--batch_size", "8", "--memory_mb", "0")
    training, _ = load(settings)
    assert isinstance(training, StreamedData)
    straight = labels_of(training.batches(0, 14))
    again, _ = load(settings)
    assert labels_of(again.batches(0, 14)) == straight
    assert labels_of(again.batches(9, 14)) == straight[9:]


@pytest.mark.parametrize("content", [b"", b"no record at all, but long enough for a header"])
def test_bad_record_file_ends_66(tmp_path: Path, content: bytes) -> None:
    from trainer.data.loading import load

    (tmp_path / "bad").write_bytes(content)
    files = f"--train_files {tmp_path}/bad --eval_files {tmp_path}/bad".split()
    with pytest.raises(TrainerError) as caught:
        load(config(*files))
    assert caught.value.exit_code == ExitCode.NO_INPUT
    assert "bad" in caught.value.detail


def test_calls_grow_carefully_and_follow_the_time() -> None:
    from trainer.loop import CallSizer

    sizer = CallSizer(1.0)
    sizes = []
    for _ in range(6):
        sizes.append(sizer.steps)
        sizer.observe(sizer.steps, 0.05 * sizer.steps)
    assert sizes == [1, 2, 4, 8, 16, 20]
    sizer.observe(20, 40.0)
    assert sizer.steps == 1
