"""Folders of images to convert: one folder for each class, perhaps below one for each split."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any

from trainer.data.sources import EVAL, TRAIN, UNSPLIT, Part, Source
from trainer.faults import no_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

IMAGE_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp"})
_OTHER_IMAGES = frozenset({".webp", ".tif", ".tiff", ".heic", ".avif", ".jp2", ".ppm", ".pgm"})
_SPLIT_FOLDERS = {
    "train": TRAIN,
    "test": EVAL,
    "val": EVAL,
    "valid": EVAL,
    "validation": EVAL,
    "eval": EVAL,
}


def open_folder(root: Path) -> Source:
    """Return the images of a folder; hidden files and folders are left out.

    Raises:
        TrainerError: there are none in class folders.
    """
    inner = {each.name: each for each in _folders(root)}
    splits = {name: folder for name, folder in inner.items() if name.lower() in _SPLIT_FOLDERS}
    folders = splits if set(splits) == set(inner) and splits else {"": root}
    names = sorted({_label(each) for folder in folders.values() for each in _folders(folder)})
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    labels = {name: number for number, name in enumerate(names)}
    left_out: Counter[str] = Counter()
    by_split: dict[str, list[tuple[Path, int]]] = {}
    for split, folder in sorted(folders.items()):
        part = by_split.setdefault(_SPLIT_FOLDERS.get(split.lower(), UNSPLIT), [])
        for each in _folders(folder):
            part += [(path, labels[_label(each)]) for path in _pictures(each, left_out)]
    if not any(by_split.values()):
        raise no_input(
            f"{root}: no images in class folders",
            "expected <folder>/<class>/<image>.png, or train/ and test/ above the classes",
        )
    parts = tuple(_file_part(name, files) for name, files in by_split.items())
    return Source(parts, tuple(names), _notes(left_out))


def _label(folder: Path) -> str:
    """Return a class's name; the same one whether or not accents are letters of their own."""
    return unicodedata.normalize("NFC", folder.name)


def _folders(folder: Path) -> list[Path]:
    found = (each for each in folder.iterdir() if each.is_dir())
    return sorted(each for each in found if not each.name.startswith((".", "__MACOSX")))


def _pictures(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        ending = path.suffix.lower()
        if path.name.startswith("."):
            continue
        if ending in IMAGE_ENDINGS:
            yield path
        elif ending in _OTHER_IMAGES:
            left_out[ending] += 1


def _notes(left_out: Counter[str]) -> tuple[str, ...]:
    if not left_out:
        return ()
    kinds = ", ".join(f"{count} {ending}" for ending, count in sorted(left_out.items()))
    return (f"left out, since only PNG, JPEG, GIF and BMP are read: {kinds}",)


def _file_part(name: str, files: Sequence[tuple[Path, int]]) -> Part:
    def read(order: Any) -> Iterator[tuple[Any, int]]:
        for number in range(len(files)) if order is None else order:
            yield files[number]

    size = sum(path.stat().st_size for path, _ in files)
    return Part(name, len(files), size, read)
