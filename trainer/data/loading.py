"""Chooses and opens the data that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import tensorflow as tf

from trainer.data import records
from trainer.data.digest import digest_of_arrays
from trainer.data.embedded import held_out_mask, read_embedded
from trainer.data.evaluation import EvaluationData, HeldOutArrays
from trainer.data.held_out_records import HeldOutRecords
from trainer.data.index import count_records
from trainer.data.memory import IndexedData, as_tensor, empty_bytes
from trainer.data.streamed import StreamedData
from trainer.data.synthetic import synthetic_examples
from trainer.faults import no_input
from trainer.model_specs import ModelSpec, model_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.config import Config
    from trainer.data.share import Share

SYNTHETIC_HELD_OUT = 1024
_BYTES_AT_ONCE = 2**24


class TrainingData(Protocol):
    """A source of global batches."""

    @property
    def examples(self) -> int:
        """How many there are."""
        ...

    @property
    def digest(self) -> str:
        """Short digest that other data is known by; empty for what the settings alone tell."""
        ...

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one pass."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """What is read while training runs; empty for data in memory."""
        ...

    def batches(self, first_step: int, last_step: int, share: Share | None = None) -> Any:
        """Return a dataset of the pieces of the steps first_step .. last_step - 1."""
        ...


def input_facts(data: TrainingData) -> dict[str, Any]:
    """Return how training data reaches the steps; every source ends in `memory.finish`."""
    is_in_memory = not data.files
    return {
        "source": "memory" if is_in_memory else "files",
        "cached": is_in_memory,
        "prefetch": True,
        "parallel_map": True,
    }


def load(
    config: Config, *, hosts: int = 1, warn: Callable[[str], None] = lambda _: None
) -> tuple[TrainingData, EvaluationData]:
    """Return the training and evaluation data that the settings name.

    Args:
        config: the settings.
        hosts: number of hosts that read; the files are shared out among them.
        warn: told what is worth knowing but no failure.

    Raises:
        TrainerError: a file is missing, unreadable, or not a TFRecord of images for the model.
    """
    spec = model_spec(config.model, config.image_size, config.classes)
    if config.synthetic:
        return _synthetic(config, spec)
    if config.embedded:
        images, labels = read_embedded()
        held_out = held_out_mask(labels)
        training = _in_memory(images[~held_out], labels[~held_out], config, spec)
        return training, HeldOutArrays(images[held_out], labels[held_out])
    return _from_records(config, spec, hosts, warn)


def _synthetic(config: Config, spec: ModelSpec) -> tuple[TrainingData, EvaluationData]:
    take = synthetic_examples(spec, config.seed)
    training = _indexed(take, config.synthetic, config, spec)
    count = min(SYNTHETIC_HELD_OUT, max(1, config.synthetic // 4))
    if spec.image_bytes > 4096:
        count = min(count, 128)
    images, labels = take(tf.range(config.synthetic, config.synthetic + count))
    return training, HeldOutArrays(images.numpy(), labels.numpy())


def _indexed(
    take: Callable[[Any], tuple[Any, Any]],
    examples: int,
    config: Config,
    spec: ModelSpec,
    digest: str = "",
) -> IndexedData:
    return IndexedData(
        take,
        examples=examples,
        digest=digest,
        batch_size=config.batch_size,
        seed=config.seed,
        image_shape=spec.image_shape,
    )


def _in_memory(images: Any, labels: Any, config: Config, spec: ModelSpec) -> IndexedData:
    kept_images, kept_labels = as_tensor(images), tf.constant(labels)

    def take(indices: Any) -> tuple[Any, Any]:
        return tf.gather(kept_images, indices), tf.gather(kept_labels, indices)

    return _indexed(take, len(labels), config, spec, digest_of_arrays(images, labels))


def _from_records(
    config: Config, spec: ModelSpec, hosts: int, warn: Callable[[str], None]
) -> tuple[TrainingData, EvaluationData]:
    files = records.expand(config.train_files, "--train_files")
    held_out = records.expand(config.eval_files, "--eval_files")
    both = sorted(set(files) & set(held_out))
    if both:
        warn(f"{both[0]} is trained and evaluated on: the accuracy is not that of unseen data")
    for names in (files, held_out):
        records.compression(names)
    counts = count_records(files, config.model_dir.rstrip("/"))
    empty = [name for name, count in zip(files, counts, strict=True) if not count]
    if empty and any(counts):
        warn(f"{len(empty)} of {len(files)} training files hold no records, such as {empty[0]}")
    decoder = records.make_decoder(files, spec)
    training = _training_records(config, spec, files, counts, decoder, hosts)
    if training.steps_per_epoch == 0:
        raise no_input(
            f"--train_files hold {sum(counts)} examples, less than one batch of "
            f"{config.batch_size}",
            "use a smaller --batch_size or more files",
        )
    return training, _held_out(held_out, spec, config)


def _training_records(
    config: Config,
    spec: ModelSpec,
    files: Sequence[str],
    counts: Sequence[int],
    decoder: records.Decoder,
    hosts: int,
) -> TrainingData:
    limit = config.memory_mb * 2**20
    if hosts == 1 and sum(counts) * spec.image_bytes <= limit:
        images, labels = _read_all(files, decoder, sum(counts), spec)
        return _in_memory(images, labels, config, spec)
    size = records.total_bytes(files)
    return StreamedData(
        files,
        counts,
        decoder.decode,
        batch_size=config.batch_size,
        seed=config.seed,
        record_bytes=size / max(1, sum(counts)),
        hosts=hosts,
    )


def _held_out(files: Sequence[str], spec: ModelSpec, config: Config) -> EvaluationData:
    decoder = records.make_decoder(files, spec)
    examples = sum(count_records(files, config.model_dir.rstrip("/")))
    if examples * spec.image_bytes > config.memory_mb * 2**20:
        return HeldOutRecords(files, decoder, examples)
    return HeldOutArrays(*_read_all(files, decoder, examples, spec))


def _read_all(
    files: Sequence[str], decoder: records.Decoder, count: int, spec: ModelSpec
) -> tuple[Any, Any]:
    """Return all images and labels, decoded straight into their final place."""
    images = empty_bytes((count, *spec.image_shape))
    labels = np.empty(count, np.int32)
    filled = 0
    at_once = max(1, min(records.RECORDS_AT_ONCE, _BYTES_AT_ONCE // spec.image_bytes))
    for part_images, part_labels in records.decoded_batches(files, decoder, at_once):
        end = filled + int(part_labels.shape[0])
        if end > count:
            break
        images[filled:end], labels[filled:end] = part_images.numpy(), part_labels.numpy()
        filled = end
    if filled != count:
        raise no_input(
            f"{files[0]} and its neighbours hold {filled} records where {count} were counted",
            "the files change while they are read, or dataset.json beside them is out of date",
        )
    return images, labels
