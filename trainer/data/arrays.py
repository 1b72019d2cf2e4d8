"""NumPy's .npz files to convert: read whole if they are small, else as a stream."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from trainer.data.labels import as_numbers
from trainer.data.pixels import as_bytes, in_four_dimensions, scale_of
from trainer.data.sources import EVAL, TRAIN, UNSPLIT, Part, Source
from trainer.faults import no_input
from trainer.npz import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_KEPT_BYTES = 256 * 2**20
"""Images up to this size are read whole, and written in a fully mixed order."""
_BYTES_AT_ONCE = 16 * 2**20
_PAIRS = (
    (UNSPLIT, "images", "labels"),
    (UNSPLIT, "x", "y"),
    (TRAIN, "x_train", "y_train"),
    (TRAIN, "train_images", "train_labels"),
    (EVAL, "x_test", "y_test"),
    (EVAL, "test_images", "test_labels"),
)


def open_npz(path: Path) -> Source:
    """Return the images and labels of a file.

    Raises:
        TrainerError: it is damaged, or holds no images with labels.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = {name.removesuffix(".npy") for name in archive.namelist()}
        pairs = [pair for pair in _PAIRS if {pair[1], pair[2]} <= found]
        loaded = [
            (split, _Member.open(path, images), _Member.open(path, labels).load())
            for split, images, labels in pairs
        ]
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    if not pairs:
        raise no_input(
            f"{path}: its arrays are {', '.join(sorted(found)) or 'none'}",
            "images and labels, x and y, or x_train, y_train, x_test and y_test are needed",
        )
    together = [as_numbers(str(path), labels, images.count) for _, images, labels in loaded]
    if len({bool(some) for numbers, some in together if len(numbers)}) > 1:
        raise no_input(
            f"{path}: labels are names in one split and numbers in another",
            "give all splits labels of one kind",
        )
    names = tuple(sorted({name for _, some in together for name in some}))
    parts = tuple(
        _part(path, split, images, _renumbered(numbers, some, names))
        for (split, images, _), (numbers, some) in zip(loaded, together, strict=True)
    )
    return Source(parts, names)


def _unreadable(path: Path, error: Exception) -> Exception:
    return no_input(f"{path}: not a readable .npz file: {error}", "save or copy it again")


def _renumbered(numbers: Any, own: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Return labels by the names of all splits instead of those of one."""
    if not own:
        return numbers
    return np.searchsorted(np.array(names), np.array(own))[numbers]


def _part(path: Path, split: str, images: _Member, labels: Any) -> Part:
    if images.bytes > _KEPT_BYTES and images.can_be_streamed:
        return _streamed_part(path, split, images, labels)
    try:
        array = in_four_dimensions(str(path), images.load())
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    pixels = as_bytes(str(path), array, scale_of(str(path), array))

    def read(order: Any) -> Iterator[tuple[Any, int]]:
        for number in range(len(pixels)) if order is None else order:
            yield pixels[number], int(labels[number])

    return Part(split, len(pixels), int(pixels.nbytes), read)


def _streamed_part(path: Path, split: str, images: _Member, labels: Any) -> Part:
    def read(_: Any) -> Iterator[tuple[Any, int]]:
        number, scale = 0, None
        try:
            for rows in images.chunks():
                array = in_four_dimensions(str(path), rows)
                scale = scale_of(str(path), array) if scale is None else scale
                for image in as_bytes(str(path), array, scale):
                    yield image, int(labels[number])
                    number += 1
        except UNREADABLE as error:
            raise _unreadable(path, error) from error

    return Part(split, None, images.count * images.row_bytes // images.dtype.itemsize, read)


@dataclass(frozen=True)
class _Member:
    """One array of a file, of which only the header is read."""

    path: Path
    name: str
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: Any

    @classmethod
    def open(cls, path: Path, name: str) -> _Member:
        """Read the header of an array."""
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
            return cls(path, name, *_header(file))

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.shape[0] if self.shape else 0

    @property
    def row_bytes(self) -> int:
        """Size of a row in the file."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * int(self.dtype.itemsize)

    @property
    def bytes(self) -> int:
        """Size of the array."""
        return self.count * self.row_bytes

    @property
    def can_be_streamed(self) -> bool:
        """Whether the rows lie in the file one after the other."""
        return not self.fortran_order and not self.dtype.hasobject and self.row_bytes > 0

    def load(self) -> Any:
        """Return the whole array."""
        with np.load(self.path, allow_pickle=False) as arrays:
            return arrays[self.name]

    def chunks(self) -> Iterator[Any]:
        """Yield the rows in order, some at a time."""
        at_once = max(1, _BYTES_AT_ONCE // self.row_bytes)
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as file:
            _header(file)
            for begin in range(0, self.count, at_once):
                rows = min(at_once, self.count - begin)
                content = file.read(rows * self.row_bytes)
                if len(content) < rows * self.row_bytes:
                    raise EOFError(f"{self.name} ends after {begin} of {self.count} images")
                yield np.frombuffer(content, self.dtype).reshape(rows, *self.shape[1:])


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, Any]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)
