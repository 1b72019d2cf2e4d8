"""Reading labelled images from TFRecord files, local or on gs://."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.data.faults import MARK, from_tensorflow
from trainer.data.places import local_files, named_once
from trainer.faults import no_input
from trainer.joblock import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainer.model_specs import ModelSpec

IMAGE_KEYS = ("image", "image_raw", "image/encoded", "x")
LABEL_KEYS = ("label", "image/class/label", "y")
RECORDS_AT_ONCE = 4096
_ENCODED_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM")


@dataclass(frozen=True)
class Decoder:
    """Turns a vector of raw records into (uint8 images [n, height, width, channels], labels [n]).

    Attributes:
        decode: the function, usable inside a dataset; one vectorised parse a batch.
        compiled: the same for vectors of any length outside of a dataset.
        encoded: whether the images are PNG, JPEG, GIF or BMP, which are costly to decode.
    """

    decode: Callable[[Any], tuple[Any, Any]]
    compiled: Callable[[Any], tuple[Any, Any]]
    encoded: bool


def expand(patterns: Sequence[str], flag: str) -> list[str]:
    """Return the sorted files that the patterns match.

    Raises:
        TrainerError: a pattern matches nothing, or the place cannot be listed.
    """
    files: list[str] = []
    for pattern in patterns:
        if not is_remote(pattern):
            files += local_files(pattern, flag)
            continue
        try:
            found = sorted(tf.io.gfile.glob(pattern))
        except tf.errors.OpError as error:
            raise from_tensorflow(error, f"{flag} {pattern}") from error
        if not found:
            raise no_input(f"{flag} {pattern}: no such file", "check the path")
        files += found
    return named_once(files)


def compression(files: Sequence[str]) -> str:
    """Return the compression that the file names tell: GZIP or none.

    Raises:
        TrainerError: only some of the files are compressed.
    """
    compressed = [name.endswith(".gz") for name in files]
    if any(compressed) and not all(compressed):
        plain = files[compressed.index(False)]
        raise no_input(
            f"{plain} is not compressed, but {files[compressed.index(True)]} is",
            "give files of one kind; names of GZIP files end in .gz",
        )
    return "GZIP" if compressed and compressed[0] else ""


def total_bytes(files: Sequence[str]) -> int:
    """Return the size of all files in bytes."""
    return sum(int(tf.io.gfile.stat(name).length) for name in files)


def raw_batches(name: str, size: int = RECORDS_AT_ONCE) -> Iterator[Any]:
    """Yield the serialized records of one file as string tensors [<= size].

    Raises:
        TrainerError: the file is damaged or cannot be read; it is named.
    """
    dataset = tf.data.TFRecordDataset([name], compression_type=compression([name]))
    try:
        yield from dataset.batch(size).prefetch(2)
    except tf.errors.OpError as error:
        raise from_tensorflow(error, name) from error


def decoded_batches(
    files: Sequence[str], decoder: Decoder, size: int = RECORDS_AT_ONCE
) -> Iterator[tuple[Any, Any]]:
    """Yield images and labels of the files, in order, as tensors of at most `size` examples.

    Raises:
        TrainerError: a file is damaged, or holds an image or a label of another form.
    """
    for name in files:
        try:
            for raw in raw_batches(name, size):
                yield decoder.compiled(raw)
        except tf.errors.OpError as error:  # noqa: PERF203 - once a file
            raise from_tensorflow(error, name) from error


def make_decoder(files: Sequence[str], spec: ModelSpec) -> Decoder:
    """Return the decoder for files like the first one that has a record.

    The feature names and the form of the image (raw bytes, numbers, or an encoded picture) are
    taken from its first record; every later record is held to that form while it is read.

    Raises:
        TrainerError: the first record is not a labelled image that fits the model.
    """
    name, example = _first_example(files)
    features = example.features.feature
    image_key = next((key for key in IMAGE_KEYS if key in features), None)
    label_key = next((key for key in LABEL_KEYS if key in features), None)
    if image_key is None or label_key is None:
        raise no_input(
            f"{name}: the record has the features {', '.join(sorted(features)) or 'none'}",
            f"one of {', '.join(IMAGE_KEYS)} and one of {', '.join(LABEL_KEYS)} is needed",
        )
    feature = features[image_key]
    if features[label_key].WhichOneof("kind") != "int64_list":
        raise no_input(f"{name}: {label_key} is no whole number", "store labels as int64, 0 and up")
    spec_of_parse: dict[str, Any] = {label_key: tf.io.FixedLenFeature([], tf.int64)}
    encoded = False
    if feature.WhichOneof("kind") == "bytes_list":
        first = feature.bytes_list.value[0] if feature.bytes_list.value else b""
        spec_of_parse[image_key] = tf.io.FixedLenFeature([], tf.string)
        encoded = first.startswith(_ENCODED_STARTS)
        to_images = _encoded_to_images(spec) if encoded else _raw_to_images(name, first, spec)
    else:
        values = feature.int64_list.value or feature.float_list.value
        _check_length(name, len(values), "numbers", spec)
        kind = tf.int64 if feature.WhichOneof("kind") == "int64_list" else tf.float32
        spec_of_parse[image_key] = tf.io.FixedLenFeature([spec.image_bytes], kind)
        to_images = numbers_to_images

    def decode(records: Any) -> tuple[Any, Any]:
        parsed = tf.io.parse_example(records, spec_of_parse)
        images = tf.reshape(to_images(parsed[image_key]), [-1, *spec.image_shape])
        return images, _checked_labels(parsed[label_key], spec)

    any_length = [tf.TensorSpec([None], tf.string)]
    compiled = tf.function(decode, input_signature=any_length, autograph=False)
    return Decoder(decode, compiled, encoded)


def _first_example(files: Sequence[str]) -> tuple[str, Any]:
    for name in files:
        records = next((batch for batch in raw_batches(name, 1)), None)
        if records is None:
            continue
        example = tf.train.Example()
        try:
            example.ParseFromString(records.numpy()[0])
        except Exception as error:
            raise no_input(
                f"{name}: not a tf.train.Example: {error}",
                "convert the data with python -m trainer.data convert",
            ) from error
        return name, example
    what = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    raise no_input(f"{what}: no records", "the files are empty: write or copy them again")


def _check_length(name: str, found: int, unit: str, spec: ModelSpec) -> None:
    if found != spec.image_bytes:
        height, width, channels = spec.image_shape
        raise no_input(
            f"{name}: the image has {found} {unit}",
            f"{spec.name} takes {spec.image_bytes} ({height} x {width} x {channels}), or a PNG "
            "or JPEG of that size",
        )


def _raw_to_images(name: str, first: bytes, spec: ModelSpec) -> Callable[[Any], Any]:
    _check_length(name, len(first), "bytes", spec)

    def convert(values: Any) -> Any:
        # `decode_raw` would silently pad or cut an image of another size.
        lengths = tf.strings.length(values)
        wrong = tf.boolean_mask(lengths, tf.not_equal(lengths, spec.image_bytes))
        message = [f"{MARK} an image is not of {spec.image_bytes} bytes but", wrong[:1]]
        with tf.control_dependencies([tf.debugging.Assert(tf.equal(tf.size(wrong), 0), message)]):
            return tf.io.decode_raw(values, tf.uint8, fixed_length=spec.image_bytes)

    return convert


def _encoded_to_images(spec: ModelSpec) -> Callable[[Any], Any]:
    height, width, channels = spec.image_shape

    def one(value: Any) -> Any:
        image = tf.io.decode_image(value, channels=channels, expand_animations=False)
        image.set_shape([None, None, channels])
        if spec.resizes:
            resized = tf.image.resize(image, [height, width])
            return tf.cast(tf.round(resized), tf.uint8)
        found = tf.shape(image)[:2]
        fits = tf.reduce_all(tf.equal(found, [height, width]))
        message = [f"{MARK} an image is not {height} x {width} pixels but", found]
        with tf.control_dependencies([tf.debugging.Assert(fits, message)]):
            return tf.ensure_shape(tf.identity(image), spec.image_shape)

    def convert(values: Any) -> Any:
        return tf.map_fn(one, values, fn_output_signature=tf.TensorSpec(spec.image_shape, tf.uint8))

    return convert


def numbers_to_images(values: Any) -> Any:
    """Return uint8 pixels of numbers that lie in 0 to 255, or all in 0 to 1."""
    as_float = tf.cast(values, tf.float32)
    scale = tf.where(tf.reduce_max(as_float) <= 1.0, 255.0, 1.0)
    return tf.cast(tf.clip_by_value(tf.round(as_float * scale), 0.0, 255.0), tf.uint8)


def _checked_labels(labels: Any, spec: ModelSpec) -> Any:
    outside = tf.boolean_mask(labels, tf.logical_or(labels < 0, labels >= spec.classes))
    message = [f"{MARK} a label is not in 0 to {spec.classes - 1} but", outside[:1]]
    with tf.control_dependencies([tf.debugging.Assert(tf.equal(tf.size(outside), 0), message)]):
        return tf.cast(labels, tf.int32)
