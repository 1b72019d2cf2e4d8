"""The digits that ship with the trainer, read with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.data import EMBEDDED_FILE
from trainer.faults import ExitCode, TrainerError

_HELD_OUT_EACH = 5


def read_embedded() -> tuple[Any, Any]:
    """Return all images (uint8 [5000, 28, 28, 1]) and labels (int32 [5000]).

    Raises:
        TrainerError: the file cannot be read.
    """
    try:
        with np.load(EMBEDDED_FILE) as arrays:
            images = arrays["images"].reshape(-1, 28, 28, 1)
            return images, arrays["labels"].astype(np.int32)
    except (OSError, ValueError, KeyError) as error:
        raise TrainerError(
            ExitCode.NO_INPUT,
            "BAD_REQUEST",
            f"the embedded digits cannot be read: {EMBEDDED_FILE}: {error}",
            "install the trainer again, or give --train_files and --eval_files",
        ) from error


def held_out_mask(labels: Any) -> Any:
    """Return which examples are held out: every fifth of each class, in file order."""
    mask = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        mask[np.flatnonzero(labels == label)[_HELD_OUT_EACH - 1 :: _HELD_OUT_EACH]] = True
    return mask
