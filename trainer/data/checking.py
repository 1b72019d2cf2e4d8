"""Reads TFRecord files to their end and says what is wrong with which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.data.records import Decoder, decoded_batches, expand, make_decoder
from trainer.faults import TrainerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.model_specs import ModelSpec


def check_files(patterns: Sequence[str], spec: ModelSpec) -> list[dict[str, Any]]:
    """Return one report for each file: file, records, ok, problem, and examples of each class.

    Raises:
        TrainerError: a pattern matches nothing.
    """
    return [_check(name, spec) for name in expand(patterns, "file")]


def _check(name: str, spec: ModelSpec) -> dict[str, Any]:
    counts = np.zeros(spec.classes, np.int64)
    problem = None
    try:
        decoder: Decoder = make_decoder([name], spec)
        for _, labels in decoded_batches([name], decoder, 512):
            counts += np.bincount(labels.numpy(), minlength=spec.classes)
    except TrainerError as fault:
        problem = f"{fault.detail} ({fault.hint})"
    return {
        "file": name,
        "ok": problem is None,
        "records": int(counts.sum()),
        "problem": problem,
        "classes_seen": int((counts > 0).sum()),
        "largest_class": int(counts.max()),
        "smallest_class": int(counts.min()),
    }
