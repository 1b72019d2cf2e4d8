"""Reading digit images from TFRecord files, local or on gs://."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.model import IMAGE_SHAPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_IMAGE_KEYS = ("image", "image_raw", "image/encoded", "x")
_LABEL_KEYS = ("label", "image/class/label", "y")
_PIXELS = IMAGE_SHAPE[0] * IMAGE_SHAPE[1]
_ENCODED_STARTS = (b"\x89PNG", b"\xff\xd8\xff")


def _unreadable(detail: str, hint: str, error_class: str = "BAD_REQUEST") -> TrainerError:
    return TrainerError(ExitCode.NO_INPUT, error_class, one_line(detail), hint)


def _from_tensorflow(error: Exception, what: str) -> TrainerError:
    known = classify(str(error))
    if known:
        return _unreadable(f"{what}: {error}", known.hint, known.error_class)
    return _unreadable(f"{what}: {error}", "check that the files are complete TFRecord files")


def expand(patterns: Sequence[str], flag: str) -> list[str]:
    """Return the sorted files that the patterns match.

    Raises:
        TrainerError: a pattern matches nothing, or the place cannot be listed.
    """
    files: list[str] = []
    for pattern in patterns:
        try:
            found = sorted(tf.io.gfile.glob(pattern))
        except tf.errors.OpError as error:
            raise _from_tensorflow(error, f"{flag} {pattern}") from error
        if not found:
            raise _unreadable(f"{flag} {pattern}: no such file", "check the path")
        files += found
    return files


def compression(files: Sequence[str]) -> str:
    """Return the compression that the file names tell: GZIP or none."""
    return "GZIP" if files[0].endswith(".gz") else ""


def total_bytes(files: Sequence[str]) -> int:
    """Return the size of all files in bytes."""
    return sum(int(tf.io.gfile.stat(name).length) for name in files)


def _raw_batches(files: Sequence[str]) -> Any:
    records = tf.data.TFRecordDataset(list(files), compression_type=compression(files))
    return records.batch(4096)


def count(files: Sequence[str]) -> int:
    """Return the number of records."""
    try:
        return sum(int(batch.shape[0]) for batch in _raw_batches(files))
    except tf.errors.OpError as error:
        raise _from_tensorflow(error, "TFRecord files") from error


def read_raw(files: Sequence[str]) -> Any:
    """Return all serialized records as an object array."""
    try:
        batches = [batch.numpy() for batch in _raw_batches(files)]
    except tf.errors.OpError as error:
        raise _from_tensorflow(error, "TFRecord files") from error
    if not batches:
        raise _unreadable(f"{files[0]}: no records", "the files are empty")
    return np.concatenate(batches)


def read_decoded(files: Sequence[str]) -> tuple[Any, Any]:
    """Return all images (uint8 [n, 28, 28, 1]) and labels (int32 [n])."""
    decode = tf.function(decoder(files), reduce_retracing=True)
    try:
        parts = [decode(batch) for batch in _raw_batches(files)]
    except tf.errors.OpError as error:
        raise _from_tensorflow(error, "--eval_files") from error
    images = np.concatenate([part[0].numpy() for part in parts])
    return images, np.concatenate([part[1].numpy() for part in parts]).astype(np.int32)


def decoder(files: Sequence[str]) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function that parses a whole vector of records at once.

    The feature names and the form of the image (raw bytes, numbers, PNG or JPEG) are taken from
    the first record.

    Raises:
        TrainerError: the first record is not an image of 28 x 28 pixels with a label.
    """
    features = _first_example(files[0], compression(files)).features.feature
    image_key = next((key for key in _IMAGE_KEYS if key in features), None)
    label_key = next((key for key in _LABEL_KEYS if key in features), None)
    if image_key is None or label_key is None:
        raise _unreadable(
            f"{files[0]}: the record has the features {', '.join(sorted(features)) or 'none'}",
            f"one of {', '.join(_IMAGE_KEYS)} and one of {', '.join(_LABEL_KEYS)} is needed",
        )
    feature = features[image_key]
    kind = feature.WhichOneof("kind")
    spec: dict[str, Any] = {label_key: tf.io.FixedLenFeature([], tf.int64)}
    if kind == "bytes_list":
        spec[image_key] = tf.io.FixedLenFeature([], tf.string)
        to_images = _bytes_to_images(files[0], feature.bytes_list.value[0])
    else:
        number = tf.int64 if kind == "int64_list" else tf.float32
        spec[image_key] = tf.io.FixedLenFeature([_PIXELS], number)
        to_images = _numbers_to_images

    def decode(records: Any) -> tuple[Any, Any]:
        parsed = tf.io.parse_example(records, spec)
        images = tf.reshape(to_images(parsed[image_key]), [-1, *IMAGE_SHAPE])
        return images, tf.cast(parsed[label_key], tf.int32)

    return decode


def _first_example(name: str, compression_type: str) -> Any:
    example = tf.train.Example()
    try:
        dataset = tf.data.TFRecordDataset([name], compression_type=compression_type).take(1)
        records = [record.numpy() for record in dataset]
    except tf.errors.OpError as error:
        raise _from_tensorflow(error, name) from error
    if not records:
        raise _unreadable(f"{name}: no records", "the file is empty")
    try:
        example.ParseFromString(records[0])
    except Exception as error:
        raise _unreadable(f"{name}: not a tf.train.Example: {error}", "convert it") from error
    return example


def _bytes_to_images(name: str, first: bytes) -> Callable[[Any], Any]:
    if first.startswith(_ENCODED_STARTS):
        return _decode_encoded
    if len(first) != _PIXELS:
        raise _unreadable(
            f"{name}: the image has {len(first)} bytes",
            f"{_PIXELS} raw grey bytes, a PNG or a JPEG of 28 x 28 are understood",
        )
    return lambda values: tf.io.decode_raw(values, tf.uint8, fixed_length=_PIXELS)


def _decode_encoded(values: Any) -> Any:
    def one(value: Any) -> Any:
        image = tf.io.decode_image(value, channels=1, expand_animations=False)
        return tf.ensure_shape(image, IMAGE_SHAPE)

    return tf.map_fn(one, values, fn_output_signature=tf.uint8)


def _numbers_to_images(values: Any) -> Any:
    as_float = tf.cast(values, tf.float32)
    scale = tf.where(tf.reduce_max(as_float) <= 1.0, 255.0, 1.0)
    return tf.cast(tf.clip_by_value(tf.round(as_float * scale), 0.0, 255.0), tf.uint8)
