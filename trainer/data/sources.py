"""What can be converted: .npz arrays, folders of images, and CSV files."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRAIN, EVAL, UNSPLIT = "train", "eval", "all"
_FILES_AT_ONCE = 64


@dataclass(frozen=True)
class Part:
    """One split of a source.

    Attributes:
        name: train, eval, or all if the source has no split of its own.
        count: number of examples that can be read in any order, or None for a stream.
        bytes: about how many bytes its images have when decoded.
        read: yields (image, label) of the numbers given, or of all in file order for None. An image
            is a uint8 array [height, width, channels], or the path of a picture file.
    """

    name: str
    count: int | None
    bytes: int
    read: Callable[[Any], Iterator[tuple[Any, int]]]


@dataclass(frozen=True)
class Source:
    """Something to convert.

    Attributes:
        parts: its splits.
        label_names: names of the labels 0, 1, ...; empty if they are plain numbers.
        notes: what is worth knowing but no failure, such as files that are left out.
    """

    parts: tuple[Part, ...]
    label_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
        from trainer.data.picture_folders import open_folder

        return open_folder(place)
    if not place.exists():
        raise no_input(f"{path}: no such file or folder", "check the path")
    if place.suffix.lower() == ".npz":
        from trainer.data.arrays import open_npz

        return open_npz(place)
    if place.suffix.lower() in (".csv", ".tsv"):
        from trainer.data.tables import open_table

        return open_table(place, channels)
    raise no_input(f"{path}: unknown kind of data", "give .npz, .csv, .tsv or a folder of images")


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
