"""Training and evaluation data whose order is a pure function of (seed, epoch, step).

No iterator state is ever saved: a resumed job computes where it was from the step alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import tensorflow as tf

from trainer import tfrecords
from trainer.faults import ExitCode, TrainerError
from trainer.model import IMAGE_SHAPE

if TYPE_CHECKING:
    from trainer.config import Config

EMBEDDED_FILE = Path(__file__).parent / "data" / "mnist_5k.npz"
_HELD_OUT_EACH = 5
IN_MEMORY_BYTES = 512 * 2**20
"""TFRecord files up to this size in all are kept in memory as raw records and fully shuffled."""
_SHUFFLE_BUFFER = 10_000

Decode = Callable[[Any], tuple[Any, Any]]
"""Turns a vector of raw examples into (uint8 images [n, 28, 28, 1], int32 labels [n])."""


class TrainingData(Protocol):
    """A source of global batches."""

    examples: int
    steps_per_epoch: int

    def batches(self, first_step: int, last_step: int) -> Any:
        """Return a dataset of the batches of the steps first_step .. last_step - 1."""
        ...


@dataclass(frozen=True)
class EvaluationData:
    """Held-out examples as arrays: uint8 [n, 28, 28, 1] and int32 [n]."""

    images: Any
    labels: Any

    def batches(self, batch_size: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (images, labels, weights) of equal size; weight 0 marks the padding of the last."""
        for start in range(0, len(self.labels), batch_size):
            images = self.images[start : start + batch_size]
            labels = self.labels[start : start + batch_size]
            missing = batch_size - len(labels)
            weights = np.ones(len(labels), np.float32)
            if missing:
                images = np.concatenate([images, np.zeros((missing, *IMAGE_SHAPE), np.uint8)])
                labels = np.concatenate([labels, np.zeros(missing, np.int32)])
                weights = np.concatenate([weights, np.zeros(missing, np.float32)])
            yield images, labels, weights


def epoch_order(seed: int, epoch: Any, count: int) -> Any:
    """Return the permutation of `count` examples of an epoch, int64 [count].

    Stateless Philox numbers are the same in every process and TensorFlow version.
    """
    keys = tf.random.stateless_uniform(
        [count],
        seed=tf.stack([tf.constant(seed, tf.int64), tf.cast(epoch, tf.int64)]),
        minval=None,
        maxval=None,
        dtype=tf.int64,
        alg="philox",
    )
    return tf.cast(tf.argsort(keys, stable=True), tf.int64)


class InMemoryData:
    """All examples in memory; each epoch is one full permutation of them."""

    def __init__(
        self, source: tuple[Any, ...], decode: Decode | None, *, batch_size: int, seed: int
    ) -> None:
        self._source = source
        self._decode = decode
        self._batch_size = batch_size
        self._seed = seed
        self.examples = int(source[0].shape[0])
        self.steps_per_epoch = self.examples // batch_size

    def batches(self, first_step: int, last_step: int) -> Any:
        """Return a dataset of the batches of the steps first_step .. last_step - 1."""
        per_epoch = self.steps_per_epoch
        first_epoch = first_step // per_epoch
        source, decode = self._source, self._decode

        def order(epoch: Any) -> Any:
            indices = epoch_order(self._seed, epoch, self.examples)
            used = indices[: per_epoch * self._batch_size]
            rows = tf.reshape(used, [per_epoch, self._batch_size])
            return tf.data.Dataset.from_tensor_slices(rows)

        def gather(indices: Any) -> tuple[Any, Any]:
            taken = tuple(tf.gather(part, indices) for part in source)
            images, labels = decode(taken[0]) if decode else taken
            return _fixed_shapes(images, labels, self._batch_size)

        epochs = tf.data.Dataset.range(first_epoch, last_step // per_epoch + 1)
        steps = epochs.flat_map(order).skip(first_step - first_epoch * per_epoch)
        return _finish(steps.take(last_step - first_step), gather)


class StreamedData:
    """TFRecord files too large for memory: seeded file order and seeded shuffle buffer."""

    def __init__(
        self, files: Sequence[str], decode: Decode, *, examples: int, batch_size: int, seed: int
    ) -> None:
        self._files = list(files)
        self._decode = decode
        self._batch_size = batch_size
        self._seed = seed
        self.examples = examples
        self.steps_per_epoch = examples // batch_size

    def batches(self, first_step: int, last_step: int) -> Any:
        """Return a dataset of the batches of the steps first_step .. last_step - 1."""
        per_epoch = self.steps_per_epoch
        first_epoch = first_step // per_epoch
        files = tf.constant(self._files)
        compression = tfrecords.compression(self._files)

        def one_epoch(epoch: Any) -> Any:
            names = tf.gather(files, epoch_order(self._seed, epoch, len(self._files)))
            records = tf.data.TFRecordDataset(names, compression_type=compression)
            shuffled = records.shuffle(
                _SHUFFLE_BUFFER, seed=self._seed * 1_000_003 + epoch, reshuffle_each_iteration=False
            )
            return shuffled.batch(self._batch_size, drop_remainder=True).take(per_epoch)

        def parse(records: Any) -> tuple[Any, Any]:
            return _fixed_shapes(*self._decode(records), self._batch_size)

        epochs = tf.data.Dataset.range(first_epoch, last_step // per_epoch + 1)
        steps = epochs.flat_map(one_epoch).skip(first_step - first_epoch * per_epoch)
        return _finish(steps.take(last_step - first_step), parse)


def _fixed_shapes(images: Any, labels: Any, batch_size: int) -> tuple[Any, Any]:
    return (
        tf.ensure_shape(images, [batch_size, *IMAGE_SHAPE]),
        tf.ensure_shape(tf.cast(labels, tf.int32), [batch_size]),
    )


def _finish(steps: Any, to_batch: Callable[[Any], tuple[Any, Any]]) -> Any:
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batches = steps.map(to_batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return batches.prefetch(tf.data.AUTOTUNE).with_options(options)


def load(config: Config) -> tuple[TrainingData, EvaluationData]:
    """Return the training and evaluation data that the settings name.

    Raises:
        TrainerError: a file is missing, unreadable, or not a TFRecord of digit images.
    """
    training: TrainingData
    if config.embedded:
        images, labels = _read_embedded()
        held_out = held_out_mask(labels)
        source = (tf.constant(images[~held_out]), tf.constant(labels[~held_out]))
        training = InMemoryData(source, None, batch_size=config.batch_size, seed=config.seed)
        return training, EvaluationData(images[held_out], labels[held_out])
    training = _training_records(config)
    if training.steps_per_epoch == 0:
        raise TrainerError(
            ExitCode.NO_INPUT,
            "BAD_REQUEST",
            f"--train_files hold {training.examples} examples, less than one batch of "
            f"{config.batch_size}",
            "use a smaller --batch_size or more files",
        )
    images, labels = tfrecords.read_decoded(tfrecords.expand(config.eval_files, "--eval_files"))
    return training, EvaluationData(images, labels)


def _training_records(config: Config) -> TrainingData:
    files = tfrecords.expand(config.train_files, "--train_files")
    decode = tfrecords.decoder(files)
    if tfrecords.total_bytes(files) <= IN_MEMORY_BYTES:
        source = (tf.constant(tfrecords.read_raw(files)),)
        return InMemoryData(source, decode, batch_size=config.batch_size, seed=config.seed)
    examples = tfrecords.count(files)
    return StreamedData(
        files, decode, examples=examples, batch_size=config.batch_size, seed=config.seed
    )


def _read_embedded() -> tuple[Any, Any]:
    try:
        with np.load(EMBEDDED_FILE) as arrays:
            images = arrays["images"].reshape(-1, *IMAGE_SHAPE)
            return images, arrays["labels"].astype(np.int32)
    except (OSError, ValueError, KeyError) as error:
        raise TrainerError(
            ExitCode.NO_INPUT,
            "BAD_REQUEST",
            f"the embedded digits cannot be read: {EMBEDDED_FILE}: {error}",
            "install the trainer again, or give --train_files and --eval_files",
        ) from error


def held_out_mask(labels: Any) -> Any:
    """Return which examples are held out: every fifth of each class, in file order."""
    mask = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        mask[np.flatnonzero(labels == label)[_HELD_OUT_EACH - 1 :: _HELD_OUT_EACH]] = True
    return mask
