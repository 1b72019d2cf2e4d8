"""Labels of any usual form as whole numbers from 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.faults import no_input

HIGHEST = 2**31 - 1
_HINT = "labels must be whole numbers from 0, names, or one-hot rows; one for each image"


def as_numbers(what: str, labels: Any, count: int) -> tuple[Any, tuple[str, ...]]:
    """Return labels as int64 [count], and the names of 0, 1, ... if they were names.

    Raises:
        TrainerError: they are no labels of `count` images.
    """
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == 2 and _is_one_hot(array):
        array = array.argmax(axis=1)
    if array.ndim != 1 or len(array) != count:
        raise no_input(
            f"{what}: labels of shape {list(array.shape)} and type {array.dtype} for "
            f"{count} images",
            _HINT,
        )
    if array.dtype.kind in "US":
        names, numbers = np.unique(array.astype(str), return_inverse=True)
        return numbers.astype(np.int64), tuple(names.tolist())
    if array.dtype.kind not in "iufb" or not _are_whole(array):
        raise no_input(f"{what}: labels of type {array.dtype} that are no whole numbers", _HINT)
    low, high = (array.min(), array.max()) if count else (0, 0)
    if low < 0 or high > HIGHEST:
        raise no_input(f"{what}: labels from {low} to {high}", "number labels from 0")
    return array.astype(np.int64), ()


def _is_one_hot(array: Any) -> bool:
    if array.dtype.kind not in "iufb" or not array.size:
        return False
    return bool(np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all())


def _are_whole(array: Any) -> bool:
    if array.dtype.kind != "f":
        return True
    return bool(np.isfinite(array).all() and (array == np.rint(array)).all())


def whole_number(text: str) -> int | None:
    """Return the number that a text says, such as 7 or 7.0; None if it is none from 0 on."""
    text = text.strip()
    if text.isdecimal():
        return int(text)
    whole, point, fraction = text.partition(".")
    if point and whole.isdecimal() and not fraction.strip("0"):
        return int(whole)
    return None


def gaps(seen: dict[int, int], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note if some labels never occur.

    Args:
        seen: examples of each label that occurs.
        names: of the labels, if they have any.
    """
    classes = max(len(names), max(seen, default=-1) + 1)
    missing = classes - len(seen)
    if not missing:
        return ()
    first = next(number for number in range(classes) if number not in seen)
    name = f"{names[first]}" if first < len(names) else str(first)
    return (f"{missing} of {classes} labels never occur, such as {name}",)
