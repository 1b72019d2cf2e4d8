"""Order and form of the data, with TensorFlow in this process."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from trainer.config import parse

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
    held_out = np.concatenate([labels for _, labels, _ in evaluation.batches(100)])
    assert np.bincount(held_out).tolist() == [100] * 10
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
    ((images, _, weights),) = evaluation.batches(8)
    assert images[:, 0, 0, 0].tolist() == [*range(7), 0]
    assert weights.tolist() == [1] * 7 + [0]
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


def numbered(folder: Path, counts: list[int]) -> list[str]:
    """Write files whose records are just their numbers."""
    import tensorflow as tf

    files, number = [], 0
    for part, count in enumerate(counts):
        files.append(f"{folder}/{part:02d}")
        with tf.io.TFRecordWriter(files[-1]) as writer:
            for _ in range(count):
                writer.write(str(number).encode())
                number += 1
    return files


def to_numbers(records: Any) -> tuple[Any, Any]:
    """Decode what `numbered` wrote."""
    import tensorflow as tf

    numbers = tf.strings.to_number(records, tf.int32)
    return numbers, numbers


COUNTS = [40, 0, 250, 16, 1, 15, 17, 33, 100, 64]
"""More than one group of files; shorter than a turn, as long, longer, empty."""


@pytest.mark.parametrize("window", [1, 50, 10_000])
def test_stream_can_be_entered_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    from trainer.data import streamed
    from trainer.data.share import Share

    monkeypatch.setattr(streamed, "WINDOW_RECORDS", window)
    files = numbered(tmp_path, COUNTS)
    data = streamed.StreamedData(files, COUNTS, to_numbers, batch_size=8, seed=3)
    assert data.steps_per_epoch == sum(COUNTS) // 8 == 67
    straight = labels_of(data.batches(0, 140))
    epochs = [list(chain(*straight[begin : begin + 67])) for begin in (0, 67)]
    for epoch in epochs:
        assert len(set(epoch)) == len(epoch) == 67 * 8, "nothing comes twice"
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) != epochs[0]
    for first in (13, 66, 100):
        assert labels_of(data.batches(first, 140)) == straight[first:]
    halves = labels_of(data.batches(7, 20, Share(replicas=2)))
    assert [halves[n] + halves[n + 1] for n in range(0, 26, 2)] == straight[7:20]


def test_hosts_read_files_of_their_own(tmp_path: Path) -> None:
    from trainer.data.share import Share
    from trainer.data.streamed import StreamedData

    counts = [30, 20, 25, 40]
    files = numbered(tmp_path, counts)
    data = StreamedData(files, counts, to_numbers, batch_size=8, seed=3, hosts=2)
    assert data.steps_per_epoch == 55 // 4
    parts = [labels_of(data.batches(0, 13, Share(host, 2, 1))) for host in (0, 1)]
    assert [len(part) for part in parts] == [13, 13]
    seen = [set(chain(*part)) for part in parts]
    assert seen[0] <= {*range(30), *range(50, 75)}
    assert seen[1] <= {*range(30, 50), *range(75, 115)}
    assert labels_of(data.batches(5, 13, Share(1, 2, 1))) == parts[1][5:]


def test_hosts_and_replicas_share_a_batch_in_memory() -> None:
    from trainer.data.loading import load
    from trainer.data.share import Share

    training, _ = load(config("--batch_size", "80"))
    whole = labels_of(training.batches(3, 6))
    shares = [labels_of(training.batches(3, 6, Share(host, 2, 4))) for host in (0, 1)]
    for step in range(3):
        pieces = [share[step * 4 : step * 4 + 4] for share in shares]
        assert list(chain(*chain(*pieces))) == whole[step]


def test_synthetic_images_follow_from_seed_and_number() -> None:
    from trainer.data.loading import load

    flags = [
        "--model",
        "resnet50",
        "--image_size",
        "32",
        "--classes",
        "5",
        "--synthetic",
        "64",
        "--batch_size",
        "8",
    ]
    training, evaluation = load(config(*flags))
    first, again = (list(load(config(*flags))[0].batches(0, 3)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert (one[0].numpy() == other[0].numpy()).all()
    assert first[0][0].shape == (8, 32, 32, 3)
    assert (training.examples, evaluation.examples) == (64, 16)
    labels = set(chain(*labels_of(training.batches(0, 8))))
    assert labels == set(range(5))


@pytest.mark.parametrize("sizes", [[5], [3, 4, 0, 9], [16, 16]])
def test_held_out_records_come_once_each(sizes: list[int]) -> None:
    from trainer.data.evaluation import padded

    ends = np.cumsum(sizes)
    parts = [
        (np.arange(end - size, end)[:, None], np.arange(end - size, end))
        for size, end in zip(sizes, ends, strict=True)
    ]
    batches = list(padded(iter(parts), 8))
    assert all(len(labels) == 8 for _, labels, _ in batches)
    used = [label for _, labels, weights in batches for label in labels[weights > 0]]
    assert used == list(range(sum(sizes)))


def test_calls_grow_carefully_and_follow_the_time() -> None:
    from trainer.measures import CallSizer

    sizer = CallSizer(1.0)
    sizes = []
    for _ in range(6):
        sizes.append(sizer.steps)
        sizer.observe(sizer.steps, 0.05 * sizer.steps)
    assert sizes == [1, 2, 4, 8, 16, 20]
    sizer.observe(20, 40.0)
    assert sizer.steps == 1
