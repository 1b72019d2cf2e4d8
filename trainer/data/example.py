"""Labelled images of a TFRecord file, read without TensorFlow.

Sources: example.proto and feature.proto of TensorFlow, and the encoding of protocol buffers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.model_specs import ModelSpec

IMAGE_KEYS = ("image", "image_raw", "image/encoded", "x")
LABEL_KEYS = ("label", "image/class/label", "y")
_ENCODED_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM")
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_CONVERT = "convert the data with python -m trainer.data convert"


class _MalformedError(ValueError):
    """The bytes are no protocol buffer of this kind."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise _MalformedError("a number is cut short")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) of each field; values are whole numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if size is None:
            if kind != _LENGTH:
                raise _MalformedError(f"wire type {kind} is not used")
            size, at = _varint(data, at)
        if at + size > len(data):
            raise _MalformedError("a field is cut short")
        yield key >> 3, data[at : at + size]
        at += size


def features_of(record: bytes) -> dict[str, tuple[int, bytes]]:
    """Return the features of a `tf.train.Example` by name: the kind of list, and its bytes.

    Raises:
        ValueError: it is none.
    """
    found: dict[str, tuple[int, bytes]] = {}
    for number, features in _fields(record):
        if number != 1 or not isinstance(features, bytes):
            continue
        for _, entry in _fields(features):
            parts = dict(_fields(entry))
            name, feature = parts.get(1, b""), parts.get(2, b"")
            for kind, values in _fields(feature):
                found[bytes(name).decode("utf-8", "replace")] = (kind, values)
    return found


def _bytes_of(values: bytes) -> bytes:
    return bytes(next((value for _, value in _fields(values)), b""))


def _integers(values: bytes) -> list[int]:
    numbers: list[int] = []
    for _, value in _fields(values):
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            numbers.append(number)
    return numbers


def _floats(values: bytes) -> Any:
    packed = b"".join(value for _, value in _fields(values) if isinstance(value, bytes))
    return np.frombuffer(packed, "<f4")


def decode(where: str, record: bytes, spec: ModelSpec) -> tuple[Any, int]:
    """Return image (uint8 [height, width, channels]) and label of a record.

    Args:
        where: names the record in messages.
        record: a serialized `tf.train.Example`.
        spec: of the model it must fit.

    Raises:
        TrainerError: it is no labelled image that fits.
    """
    try:
        features = features_of(record)
        image_key = next((key for key in IMAGE_KEYS if key in features), None)
        label_key = next((key for key in LABEL_KEYS if key in features), None)
        if image_key is None or label_key is None:
            raise no_input(
                f"{where}: the record has the features {', '.join(sorted(features)) or 'none'}",
                f"one of {', '.join(IMAGE_KEYS)} and one of {', '.join(LABEL_KEYS)} is needed",
            )
        pixels = _pixels(where, *features[image_key])
        kind, values = features[label_key]
        labels = _integers(values) if kind == 3 else []
    except (ValueError, TypeError, AttributeError) as error:
        raise no_input(f"{where}: not a tf.train.Example: {error}", _CONVERT) from error
    if pixels.size != spec.image_bytes:
        height, width, channels = spec.image_shape
        raise no_input(
            f"{where}: the image has {pixels.size} values",
            f"{spec.name} takes {spec.image_bytes} ({height} x {width} x {channels})",
        )
    if not labels:
        raise no_input(f"{where}: no label that is a whole number", "store labels as int64")
    if not 0 <= labels[0] < spec.classes:
        raise no_input(
            f"{where}: a label is not in 0 to {spec.classes - 1} but {labels[0]}",
            "find what is wrong with: python -m trainer.data check FILES",
        )
    return pixels.reshape(spec.image_shape), labels[0]


def _pixels(where: str, kind: int, values: bytes) -> Any:
    if kind == 1:
        content = _bytes_of(values)
        if content.startswith(_ENCODED_STARTS):
            raise no_input(
                f"{where}: the image is an encoded picture, which only TensorFlow decodes here",
                "convert the data to raw pixels, or launch with --recipe tensorflow",
            )
        return np.frombuffer(content, np.uint8)
    numbers = np.asarray(_integers(values) if kind == 3 else _floats(values), np.float32)
    scale = 255.0 if numbers.size and numbers.max() <= 1.0 else 1.0
    return np.clip(np.rint(numbers * scale), 0, 255).astype(np.uint8)
