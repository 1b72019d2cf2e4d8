"""CSV files to convert: rows of pixels, or rows that name picture files; read as a stream."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.data.labels import HIGHEST, whole_number
from trainer.data.sources import UNSPLIT, Part, Source
from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LABEL_COLUMNS = ("label", "class", "target", "y", "category")
PATH_COLUMNS = ("path", "file", "filename", "file_name", "image", "filepath")
_DELIMITERS = ",;\t|"
_LOOKED_AT = 256
"""Rows that tell whether pixels are fractions of 1."""
_MOST_NAMES = 100_000


def open_table(path: Path, channels: int) -> Source:
    """Return the examples of a file.

    Args:
        path: of the file; its delimiter and whether it has a header are found out.
        channels: of its pixels; 0 means grey unless their number says other.

    Raises:
        TrainerError: it is empty, or no such table.
    """
    table = _look_at(path)
    names = _names(table)
    numbers = {name: number for number, name in enumerate(names)}
    size = path.stat().st_size
    if table.picture is not None:
        return Source((Part(UNSPLIT, None, size, table.pictures(numbers)),), names)
    shape = _pixel_shape(path, table.width - 1, channels)
    return Source((Part(UNSPLIT, None, size // 3, table.pixels(shape, numbers)),), names)


def _look_at(path: Path) -> _Table:
    with path.open("rb") as file:
        begin = file.read(2)
    encoding = "utf-16" if begin in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with path.open(newline="", encoding=encoding, errors="replace") as file:
        line = next((line for line in file if line.strip()), "")
    if not line:
        raise no_input(f"{path}: empty", "write a row for each example")
    delimiter, first = _split(line)
    if all(_is_number(cell) for cell in first):
        return _Table(path, encoding, delimiter, False, len(first), 0, None)
    header = [cell.strip().lower() for cell in first]
    label = next((header.index(name) for name in LABEL_COLUMNS if name in header), None)
    if label is None:
        shown = ", ".join(first[:5]) + (", ..." if len(first) > 5 else "")
        raise no_input(
            f"{path}: its first row is {shown}: no column is named {', '.join(LABEL_COLUMNS)}",
            "begin with a row of column names such as path,label",
        )
    picture = next((header.index(name) for name in PATH_COLUMNS if name in header), None)
    return _Table(path, encoding, delimiter, True, len(first), label, picture)


def _split(line: str) -> tuple[str, list[str]]:
    """Return the delimiter that makes the most columns of a line, and these."""
    found = [(each, next(csv.reader([line], delimiter=each))) for each in _DELIMITERS]
    return max(found, key=lambda each: len(each[1]))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _names(table: _Table) -> tuple[str, ...]:
    """Return the sorted names of the classes; none if the first label is a number."""
    first = next(table.rows(), None)
    if first is None or whole_number(first[1][table.label]) is not None:
        return ()
    names: set[str] = set()
    for line, row in table.rows():
        names.add(row[table.label].strip())
        if len(names) > _MOST_NAMES:
            raise table.bad(line, f"more than {_MOST_NAMES} different labels")
    return tuple(sorted(names))


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
class _Table:
    """The rows of a CSV file, read as a stream of any length."""

    path: Path
    encoding: str
    delimiter: str
    has_header: bool
    width: int
    label: int
    picture: int | None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line number and the cells of each row that is not blank."""
        with self.path.open(newline="", encoding=self.encoding, errors="replace") as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            rows = (row for row in reader if row)
            try:
                for row in itertools.islice(rows, int(self.has_header), None):
                    if len(row) != self.width:
                        what = f"{len(row)} columns instead of {self.width}"
                        raise self.bad(reader.line_num, what)
                    yield reader.line_num, row
            except csv.Error as error:
                raise self.bad(reader.line_num, f"no CSV: {error}") from error

    def bad(self, line: int, what: str) -> Exception:
        """Return the failure of a line."""
        return no_input(f"{self.path}, line {line}: {what}", "mend or remove that line")

    def _number(self, line: int, row: list[str], names: dict[str, int]) -> int:
        text = row[self.label].strip()
        number = names[text] if names else whole_number(text)
        if number is None or number > HIGHEST:
            raise self.bad(line, f"label {text!r} is no whole number from 0")
        return number

    def _values(self, line: int, row: list[str]) -> Any:
        try:
            numbers = np.array(row[: self.label] + row[self.label + 1 :], np.float32)
        except ValueError:
            raise self.bad(line, "a pixel is no number") from None
        return numbers

    def _highest(self) -> float:
        """Return what the brightest pixel may be: 1 if the first rows are fractions, else 255."""
        highest, is_fraction = 0.0, False
        for line, row in itertools.islice(self.rows(), _LOOKED_AT):
            numbers = self._values(line, row)
            numbers = numbers[np.isfinite(numbers)]
            highest = max(highest, float(numbers.max(initial=0.0)))
            is_fraction = is_fraction or bool((numbers != np.rint(numbers)).any())
        return 1.0 if is_fraction and highest <= 1.0 else 255.0

    def pixels(
        self, shape: tuple[int, int, int], names: dict[str, int]
    ) -> Callable[[Any], Iterator[tuple[Any, int]]]:
        """Return the reader of rows that hold pixels."""

        def read(_: Any) -> Iterator[tuple[Any, int]]:
            highest = self._highest()
            scale = np.float32(255.0 / highest)
            for line, row in self.rows():
                label = self._number(line, row, names)
                numbers = self._values(line, row)
                if not (numbers.min() >= 0 and numbers.max() <= highest):
                    raise self.bad(line, f"a pixel is not in 0 to {highest:g}")
                yield np.rint(numbers * scale).astype(np.uint8).reshape(shape), label

        return read

    def pictures(self, names: dict[str, int]) -> Callable[[Any], Iterator[tuple[Any, int]]]:
        """Return the reader of rows that name picture files, relative to the CSV file."""
        column = self.picture or 0

        def read(_: Any) -> Iterator[tuple[Any, int]]:
            for line, row in self.rows():
                if not row[column].strip():
                    raise self.bad(line, "no picture is named")
                yield self.path.parent / row[column].strip(), self._number(line, row, names)

        return read
