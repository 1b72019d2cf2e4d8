"""60,000 digits for benchmarks: the embedded 4,000, each shifted by a few seeded pixels.

They are as many as MNIST has, so that memory and epochs are of the usual size, but they are not
MNIST; the 1,000 held-out digits are real ones that never appear among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.data.embedded import held_out_mask, read_embedded

if TYPE_CHECKING:
    from pathlib import Path

_FARTHEST = 2


def write_digits(path: Path, count: int, seed: int) -> None:
    """Write x_train, y_train, x_test, y_test as an .npz file."""
    images, labels = read_embedded()
    held_out = held_out_mask(labels)
    random = np.random.default_rng(seed)
    chosen = np.resize(random.permutation(np.flatnonzero(~held_out)), count)
    shifts = random.integers(-_FARTHEST, _FARTHEST + 1, (count, 2))
    np.savez(
        path,
        x_train=_shifted(images[chosen, :, :, 0], shifts),
        y_train=labels[chosen].astype(np.int64),
        x_test=images[held_out, :, :, 0],
        y_test=labels[held_out].astype(np.int64),
    )


def _shifted(images: Any, shifts: Any) -> Any:
    moved = np.zeros_like(images)
    size = images.shape[1]
    for down, right in {(int(a), int(b)) for a, b in shifts}:
        which = (shifts == (down, right)).all(axis=1)
        to_rows, to_columns = _place(down, size), _place(right, size)
        from_rows, from_columns = _place(-down, size), _place(-right, size)
        moved[which, to_rows, to_columns] = images[which, from_rows, from_columns]
    return moved


def _place(shift: int, size: int) -> slice:
    return slice(max(0, shift), size + min(0, shift))
