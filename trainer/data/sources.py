"""What can be converted: .npz arrays, folders of images, and CSV files."""

from __future__ import annotations

import csv
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TRAIN, EVAL, UNSPLIT = "train", "eval", "all"
_IMAGE_ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp"}
_SPLIT_FOLDERS = {"train": TRAIN, "test": EVAL, "val": EVAL, "valid": EVAL, "validation": EVAL}
_SPLIT_FOLDERS["eval"] = EVAL
_LABEL_COLUMNS = ("label", "class", "target", "y")
_PATH_COLUMNS = ("path", "file", "filename", "image")
_FILES_AT_ONCE = 256


@dataclass(frozen=True)
class Part:
    """One split of a source.

    Attributes:
        name: train, eval, or all if the source has no split of its own.
        count: number of examples, or None if only reading tells.
        bytes: about how many bytes its images have when decoded.
        read: yields (image, label) of the numbers given, or of all in file order for None. An image
            is a uint8 array [height, width, channels], or the path of a picture file.
    """

    name: str
    count: int | None
    bytes: int
    read: Callable[[Any], Iterator[tuple[Any, int]]]


class Source(Protocol):
    """Something to convert."""

    @property
    def parts(self) -> Sequence[Part]:
        """Its splits."""
        ...

    @property
    def label_names(self) -> Sequence[str]:
        """Names of the labels 0, 1, ...; empty if they are plain numbers."""
        ...


@dataclass(frozen=True)
class _Source:
    parts: tuple[Part, ...]
    label_names: tuple[str, ...] = ()


def open_source(path: str, channels: int) -> Source:
    """Return what a path holds.

    Args:
        path: of a file or folder.
        channels: of pixels that stand in a CSV file; 0 means grey unless their number says other.

    Raises:
        TrainerError: it is of no kind that is understood, or malformed.
    """
    place = Path(path)
    if place.is_dir():
        return _open_folder(place)
    if not place.exists():
        raise no_input(f"{path}: no such file or folder", "check the path")
    if place.suffix == ".npz":
        return _open_npz(place)
    if place.suffix in (".csv", ".tsv"):
        return _open_csv(place, channels)
    raise no_input(f"{path}: unknown kind of data", "give .npz, .csv, .tsv or a folder of images")


def _open_npz(path: Path) -> Source:
    try:
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError) as error:
        raise no_input(f"{path}: not a readable .npz file: {error}", "save it again") from error
    pairs = [
        (UNSPLIT, "images", "labels"),
        (UNSPLIT, "x", "y"),
        (TRAIN, "x_train", "y_train"),
        (TRAIN, "train_images", "train_labels"),
        (EVAL, "x_test", "y_test"),
        (EVAL, "test_images", "test_labels"),
    ]
    parts = tuple(
        _array_part(str(path), name, found[images], found[labels])
        for name, images, labels in pairs
        if images in found and labels in found
    )
    if not parts:
        raise no_input(
            f"{path}: its arrays are {', '.join(sorted(found)) or 'none'}",
            "images and labels, x and y, or x_train, y_train, x_test and y_test are needed",
        )
    return _Source(parts)


def _array_part(path: str, name: str, images: Any, labels: Any) -> Part:
    pixels = as_pixels(path, images)
    numbers = np.asarray(labels)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or len(numbers) != len(pixels):
        raise no_input(
            f"{path}: labels of shape {list(numbers.shape)} and type {numbers.dtype} for "
            f"{len(pixels)} images",
            "labels must be whole numbers, one for each image",
        )
    if len(numbers) and numbers.min() < 0:
        raise no_input(f"{path}: label {numbers.min()} is negative", "number labels from 0")

    def read(order: Any) -> Iterator[tuple[Any, int]]:
        for number in range(len(pixels)) if order is None else order:
            yield pixels[number], int(numbers[number])

    return Part(name, len(pixels), int(pixels.nbytes), read)


def as_pixels(path: str, images: Any) -> Any:
    """Return images as uint8 [n, height, width, channels].

    Raises:
        TrainerError: they are no images.
    """
    array = np.asarray(images)
    if array.ndim == 3:
        array = array[..., np.newaxis]
    if array.ndim != 4 or array.shape[-1] not in (1, 3):
        raise no_input(
            f"{path}: images of shape {list(array.shape)}",
            "images of shape [n, height, width] or [n, height, width, 1 or 3] are needed",
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iuf" or (array.size and not np.isfinite(array).all()):
        raise no_input(f"{path}: pixels of type {array.dtype}, or not finite", "use 0 to 255")
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if low < 0 or high > 255:
        raise no_input(f"{path}: pixels from {low:g} to {high:g}", "use 0 to 255, or 0 to 1")
    scale = 255.0 if array.dtype.kind == "f" and high <= 1 else 1.0
    return np.rint(array * scale).astype(np.uint8)


def _open_folder(root: Path) -> Source:
    inner = {each.name: each for each in root.iterdir() if each.is_dir()}
    splits = {name: folder for name, folder in inner.items() if name.lower() in _SPLIT_FOLDERS}
    folders = splits if set(splits) == set(inner) and splits else {"": root}
    names = sorted({each.name for folder in folders.values() for each in _folders(folder)})
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    labels = {name: number for number, name in enumerate(names)}
    parts = []
    for split, folder in sorted(folders.items()):
        files = [
            (path, labels[each.name])
            for each in _folders(folder)
            for path in sorted(each.rglob("*"))
            if path.suffix.lower() in _IMAGE_ENDINGS
        ]
        parts.append(_file_part(_SPLIT_FOLDERS.get(split.lower(), UNSPLIT), files))
    if not any(part.count for part in parts):
        raise no_input(
            f"{root}: no images in class folders",
            "expected <folder>/<class>/<image>.png, or train/ and test/ above the classes",
        )
    return _Source(tuple(parts), tuple(names))


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir())


def _file_part(name: str, files: Sequence[tuple[Path, int]]) -> Part:
    def read(order: Any) -> Iterator[tuple[Any, int]]:
        for number in range(len(files)) if order is None else order:
            yield files[number]

    size = sum(path.stat().st_size for path, _ in files)
    return Part(name, len(files), size, read)


def _open_csv(path: Path, channels: int) -> Source:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    if not first:
        raise no_input(f"{path}: empty", "write a row for each example")
    header = [] if all(_is_number(cell) for cell in first) else [cell.strip() for cell in first]
    lower = [cell.lower() for cell in header]
    label = next((lower.index(name) for name in _LABEL_COLUMNS if name in lower), 0)
    picture = next((lower.index(name) for name in _PATH_COLUMNS if name in lower), None)
    rows = _Rows(path, delimiter, bool(header), len(first), label)
    size = path.stat().st_size
    if picture is not None:
        return _Source((Part(UNSPLIT, None, size, rows.pictures(picture)),))
    shape = _pixel_shape(path, len(first) - 1, channels)
    return _Source((Part(UNSPLIT, None, size // 3, rows.pixels(shape)),))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _pixel_shape(path: Path, pixels: int, channels: int) -> tuple[int, int, int]:
    for count in (channels,) if channels else (1, 3):
        side = round((pixels / count) ** 0.5)
        if side and side * side * count == pixels:
            return side, side, count
    raise no_input(
        f"{path}: {pixels} values beside the label are no square image",
        "each row is a label and height x width (x 3) pixels, or has the columns path and label",
    )


@dataclass(frozen=True)
class _Rows:
    """The rows of a CSV file, read as a stream of any length."""

    path: Path
    delimiter: str
    has_header: bool
    width: int
    label: int

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        with self.path.open(newline="", encoding="utf-8", errors="replace") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            if self.has_header:
                next(reader)
            for row in reader:
                if len(row) != self.width:
                    raise self._bad(reader.line_num, f"{len(row)} columns instead of {self.width}")
                yield reader.line_num, row

    def _bad(self, line: int, what: str) -> Exception:
        return no_input(f"{self.path}, line {line}: {what}", "mend or remove that line")

    def _label(self, line: int, row: list[str]) -> int:
        text = row[self.label].strip()
        if not text.isdecimal():
            raise self._bad(line, f"label {text!r} is no whole number from 0")
        return int(text)

    def pixels(self, shape: tuple[int, int, int]) -> Callable[[Any], Iterator[tuple[Any, int]]]:
        """Return the reader of rows that hold pixels."""

        def read(_: Any) -> Iterator[tuple[Any, int]]:
            for line, row in self._rows():
                label = self._label(line, row)
                values = row[: self.label] + row[self.label + 1 :]
                try:
                    numbers = np.array(values, np.float32)
                except ValueError:
                    raise self._bad(line, "a pixel is no number") from None
                if not (numbers.min() >= 0 and numbers.max() <= 255):
                    raise self._bad(line, "a pixel is not in 0 to 255")
                yield np.rint(numbers).astype(np.uint8).reshape(shape), label

        return read

    def pictures(self, column: int) -> Callable[[Any], Iterator[tuple[Any, int]]]:
        """Return the reader of rows that name picture files, relative to the CSV file."""

        def read(_: Any) -> Iterator[tuple[Any, int]]:
            for line, row in self._rows():
                yield self.path.parent / row[column].strip(), self._label(line, row)

        return read


def ahead(
    work: Callable[[Any, int], tuple[bytes, int]], examples: Iterator[tuple[Any, int]]
) -> Iterator[tuple[bytes, int]]:
    """Yield the results of `work` in order; picture files are worked on by a few threads ahead.

    The first example is done alone, since it decides the form of all.
    """
    first = next(examples, None)
    if first is None:
        return
    yield work(*first)
    if not isinstance(first[0], Path):
        yield from itertools.starmap(work, examples)
        return
    with ThreadPoolExecutor() as pool:
        while chunk := list(itertools.islice(examples, _FILES_AT_ONCE)):
            yield from pool.map(lambda each: work(*each), chunk)
