"""Orders of examples as pure functions of the seed and of where they are used.

Stateless Philox numbers are the same in every process and TensorFlow version, so nothing about the
order is ever saved: a resumed job computes where it was from the step alone.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_HOST_SHIFT = 2**31
_EPOCH_SHIFT = 2**32


def keyed_order(first: Any, second: Any, count: Any) -> Any:
    """Return the permutation of `count` things that two whole numbers name, int64 [count]."""
    keys = tf.random.stateless_uniform(
        tf.reshape(count, [1]),
        seed=tf.stack([tf.cast(first, tf.int64), tf.cast(second, tf.int64)]),
        minval=None,
        maxval=None,
        dtype=tf.int64,
        alg="philox",
    )
    return tf.cast(tf.argsort(keys, stable=True), tf.int64)


def epoch_order(seed: int, epoch: Any, count: Any) -> Any:
    """Return the permutation of `count` examples or files of an epoch, int64 [count]."""
    return keyed_order(tf.constant(seed, tf.int64), epoch, count)


def window_order(seed: int, host: int, epoch: Any, window: Any, count: Any) -> Any:
    """Return the permutation of the `count` records of one window of a host's stream."""
    first = tf.constant(seed + (host + 1) * _HOST_SHIFT, tf.int64)
    return keyed_order(first, tf.cast(epoch, tf.int64) * _EPOCH_SHIFT + window, count)
