"""Nested JSON lists to arrays, strictly: no value is rounded, wrapped or guessed."""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from trainer.faults import one_line

if TYPE_CHECKING:
    from trainer.serve.signatures import Tensor

_NUMBER_BYTES = b"0123456789+-.eE"
_AS_ZERO = bytes(ord("0") if byte in _NUMBER_BYTES else byte for byte in range(256))
_HEAD = b'{"instances":'
_FLATTEN = chain.from_iterable
_MOST_RANKS = 32
_Array = np.ndarray[Any, Any]


class RequestError(Exception):
    """A request that cannot be answered.

    Attributes:
        status: the HTTP status.
        retry_after_s: when to try again, for 429 and 503.
        is_unread: whether a part of the body is not read, so that the connection has to end.
    """

    def __init__(
        self,
        status: int,
        text: str,
        retry_after_s: int | None = None,
        *,
        is_unread: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s
        self.is_unread = is_unread


class NumbersOnly:
    """Reads `{"instances":[...]}` of numbers in rows of one known shape, several times faster.

    The text without its numbers must be exactly the brackets of so many rows; the numbers without
    brackets are then one flat list. Whatever is not like that is left to the careful reader, which
    also knows how to say what is wrong.

    Args:
        row: shape of one row.
        dtype: type of the numbers.
    """

    def __init__(self, row: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._row = row
        self._dtype = dtype
        brackets = b""
        for dim in reversed(row):
            brackets = b"[" + b",".join([brackets] * dim) + b"]"
        self._brackets = brackets

    def read(self, body: bytes) -> _Array | None:
        """Return the rows, or None if the body is not of this kind."""
        text = body.replace(b", ", b",").replace(b": ", b":", 1)
        if not text.startswith(_HEAD):
            return None
        text = text[len(_HEAD) : text.rfind(b"}")]
        if not body.rstrip().endswith(b"}"):
            return None
        brackets = text.translate(None, _NUMBER_BYTES)
        rows, rest = divmod(len(brackets) - 1, len(self._brackets) + 1)
        if rest or rows < 1 or brackets != b"[" + b",".join([self._brackets] * rows) + b"]":
            return None
        places = text.translate(_AS_ZERO)
        if b"0[" in places or b"]0" in places:
            return None
        try:
            flat = orjson.loads(b"[" + text.translate(None, b"[]") + b"]")
            array = _exact(flat, self._dtype)
        except (RequestError, orjson.JSONDecodeError):
            return None
        return array.reshape(rows, *self._row) if array.size == len(flat) else None


def to_array(value: Any, tensor: Tensor) -> _Array:
    """Return a nested list as an array that fits a tensor.

    Raises:
        RequestError: wrong shape, type or range.
    """
    flat, shape = _flattened(value, tensor)
    wanted = tensor.shape
    fits = wanted is None or (
        len(wanted) == len(shape)
        and all(dim is None or dim == found for dim, found in zip(wanted, shape, strict=True))
    )
    if not fits:
        raise RequestError(
            400, f"input {tensor.name} has the shape {list(shape)}, wanted is {tensor.describe()}"
        )
    try:
        return _exact(flat, tensor.dtype).reshape(shape)
    except RequestError as error:
        raise RequestError(
            400, f"input {tensor.name}: {error}, wanted is {tensor.describe()}"
        ) from error


def _flattened(value: Any, tensor: Tensor) -> tuple[list[Any], tuple[int, ...]]:
    """Return the leaves of a nested list, and its shape.

    Raises:
        RequestError: it is ragged.
    """
    level: list[Any] = [value]
    shape: list[int] = []
    while level and isinstance(level[0], list):
        if len(shape) == _MOST_RANKS:
            raise RequestError(400, f"input {tensor.name} is nested too deeply")
        lengths = set(map(len, level)) if set(map(type, level)) == {list} else set()
        if len(lengths) != 1:
            raise RequestError(
                400,
                f"input {tensor.name} is ragged: lists of a level have different lengths, "
                f"wanted is {tensor.describe()}",
            )
        shape.append(lengths.pop())
        level = list(_FLATTEN(level))
    return level, tuple(shape)


def _exact(flat: list[Any], dtype: np.dtype[Any]) -> _Array:
    """Return leaves as an array of a type, if none of them changes by that.

    Raises:
        RequestError: one is of another type or out of range.
    """
    types = set(map(type, flat))
    if dtype == np.object_:
        return _strings(flat)
    if dtype.kind == "b":
        _check_types(types, {bool}, flat)
        return np.array(flat, dtype=dtype)
    if dtype.kind in "ui":
        _check_types(types, {int}, flat)
        return _whole(flat, dtype)
    _check_types(types, {int, float}, flat)
    with np.errstate(over="ignore"):
        array = np.array(flat, dtype=np.float64).astype(dtype)
    if not np.isfinite(array.astype(np.float64)).all():
        raise RequestError(400, f"a number is out of the range of {dtype.name}")
    return array


def _whole(flat: list[int], dtype: np.dtype[Any]) -> _Array:
    try:
        if dtype == np.uint8:
            return np.frombuffer(bytes(flat), np.uint8)
        wide = np.array(flat, dtype=np.uint64 if dtype == np.uint64 else np.int64)
    except (ValueError, OverflowError) as error:
        raise RequestError(400, f"a number is out of the range of {dtype.name}") from error
    if wide.size:
        about = np.iinfo(dtype)
        if int(wide.min()) < about.min or int(wide.max()) > about.max:
            raise RequestError(400, f"a number is out of the range of {dtype.name}")
    return wide.astype(dtype)


def _check_types(found: set[type], wanted: set[type], flat: list[Any]) -> None:
    if found <= wanted:
        return
    stranger = next(each for each in flat if type(each) not in wanted)
    raise RequestError(400, f"{one_line(orjson.dumps(stranger).decode(), 40)} is of another type")


def _strings(flat: list[Any]) -> _Array:
    array = np.empty(len(flat), dtype=object)
    array[:] = [_bytes_of(each) for each in flat]
    return array


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise RequestError(400, "a b64 value is not base64") from error
    _check_types({type(value)}, {str}, [value])
    return b""
