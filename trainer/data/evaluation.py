"""Held-out data: every example once, in batches of equal size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Padded = tuple[Any, Any, Any]
"""(images, labels, weights); weight 0 marks the padding of the last batch."""


class EvaluationData(Protocol):
    """A source of held-out examples."""

    @property
    def examples(self) -> int:
        """How many there are."""
        ...

    def batches(self, batch_size: int) -> Iterator[Padded]:
        """Yield batches of equal size."""
        ...


@dataclass(frozen=True)
class HeldOutArrays:
    """Held-out examples as arrays: uint8 [n, height, width, channels] and int32 [n]."""

    images: Any
    labels: Any

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self.labels)

    def batches(self, batch_size: int) -> Iterator[Padded]:
        """Yield batches of equal size."""
        return padded([(self.images, self.labels)], batch_size)


def padded(parts: Iterable[tuple[Any, Any]], batch_size: int) -> Iterator[Padded]:
    """Yield batches of exactly `batch_size` from arrays of any length."""
    left: tuple[Any, Any] | None = None
    for images, labels in parts:
        if left is not None:
            images = np.concatenate([left[0], images])  # noqa: PLW2901 - what was left comes first
            labels = np.concatenate([left[1], labels])  # noqa: PLW2901
        whole = len(labels) // batch_size * batch_size
        for start in range(0, whole, batch_size):
            chosen = slice(start, start + batch_size)
            yield images[chosen], labels[chosen], np.ones(batch_size, np.float32)
        left = (images[whole:], labels[whole:])
    if left is None or not len(left[1]):
        return
    missing = batch_size - len(left[1])
    filling = [(0, missing)] + [(0, 0)] * (left[0].ndim - 1)
    weights = np.concatenate([np.ones(len(left[1]), np.float32), np.zeros(missing, np.float32)])
    yield np.pad(left[0], filling), np.pad(left[1], (0, missing)), weights
