"""Synthetic images for benchmarks: learnable, of any size, and never stored.

Example i is a coarse pattern of its class under noise; both follow from the seed and from i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.model_specs import ModelSpec

_COARSE = 8
_NOISES = 13
"""A few noise images are shared out, since random numbers cost more than the model's input may."""
_SPREAD = 2_654_435_761
"""A large prime, so that neighbours have unrelated classes."""


def synthetic_examples(spec: ModelSpec, seed: int) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function from a vector of numbers to (uint8 images, int32 labels)."""
    height, width, channels = spec.image_shape
    random = np.random.default_rng(seed)
    patterns = tf.constant(
        random.integers(0, 160, (spec.classes, _COARSE, _COARSE, channels), np.uint8)
    )
    noises = tf.constant(random.integers(0, 96, (_NOISES, height, width, channels), np.uint8))
    rows = tf.constant(np.arange(height) * _COARSE // height)
    columns = tf.constant(np.arange(width) * _COARSE // width)

    def take(numbers: Any) -> tuple[Any, Any]:
        numbers = tf.cast(numbers, tf.int64)
        labels = tf.cast((numbers * _SPREAD + seed) % 2**31 % spec.classes, tf.int32)
        coarse = tf.gather(tf.gather(tf.gather(patterns, labels), rows, axis=1), columns, axis=2)
        return coarse + tf.gather(noises, (numbers + seed) % _NOISES), labels

    return take
