"""Training data that fits into memory: each epoch is one full permutation of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import tensorflow as tf

from trainer.data.order import epoch_order
from trainer.data.share import Share

if TYPE_CHECKING:
    from collections.abc import Callable

_ALIGNMENT = 64


_Function = TypeVar("_Function", bound="Callable[..., Any]")


def as_it_is(function: _Function) -> _Function:
    """Mark a function that needs no AutoGraph, whose rewriting takes part of a second each."""
    marked: _Function = tf.autograph.experimental.do_not_convert(function)
    return marked


class IndexedData:
    """Examples that are taken by number, in a full permutation an epoch.

    Args:
        take: returns (images, labels) of a vector of numbers; runs inside the dataset.
        examples: how many there are.
        batch_size: global batch.
        seed: names the orders.
        image_shape: of each image.
        digest: of the examples; see `trainer.data.digest`.
    """

    files: tuple[str, ...] = ()

    def __init__(
        self,
        take: Callable[[Any], tuple[Any, Any]],
        *,
        examples: int,
        batch_size: int,
        seed: int,
        image_shape: tuple[int, int, int],
        digest: str = "",
    ) -> None:
        self._take = take
        self._batch_size = batch_size
        self._seed = seed
        self._image_shape = image_shape
        self.digest = digest
        self.examples = examples
        self.steps_per_epoch = examples // batch_size

    def batches(self, first_step: int, last_step: int, share: Share | None = None) -> Any:
        """Return a dataset of the pieces of the steps first_step .. last_step - 1."""
        share = share or Share()
        per_epoch = self.steps_per_epoch
        first_epoch = first_step // per_epoch
        each = self._batch_size // share.hosts
        piece = each // share.replicas

        @as_it_is
        def order(epoch: Any) -> Any:
            indices = epoch_order(self._seed, epoch, self.examples)
            used = indices[: per_epoch * self._batch_size]
            rows = tf.reshape(used, [per_epoch, share.hosts, each])[:, share.host]
            return tf.data.Dataset.from_tensor_slices(tf.reshape(rows, [-1, piece]))

        @as_it_is
        def take(indices: Any) -> tuple[Any, Any]:
            images, labels = self._take(indices)
            return tf.ensure_shape(images, [piece, *self._image_shape]), labels

        epochs = tf.data.Dataset.range(first_epoch, last_step // per_epoch + 1)
        skipped = (first_step - first_epoch * per_epoch) * share.replicas
        steps = epochs.flat_map(order).skip(skipped)
        return finish(steps.take((last_step - first_step) * share.replicas), take)


def finish(steps: Any, to_batch: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Return the dataset of batches made from `steps`, in order, ahead of their use."""
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    batches = steps.map(as_it_is(to_batch), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    return batches.prefetch(tf.data.AUTOTUNE).with_options(options)


def empty_bytes(shape: tuple[int, ...]) -> Any:
    """Return an uninitialised uint8 array whose memory a tensor can share."""
    size = int(np.prod(shape))
    buffer = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -buffer.ctypes.data % _ALIGNMENT
    return buffer[begin : begin + size].reshape(shape)


def as_tensor(array: Any) -> Any:
    """Return a tensor that shares the memory of an array which nobody changes any more.

    `tf.constant` would hold two more copies of a large array for a while. Kernels take it for
    granted that a tensor is aligned, so an array that is not is copied first.
    """
    if array.ctypes.data % _ALIGNMENT or not array.flags.c_contiguous:
        aligned = empty_bytes(array.shape)
        aligned[...] = array
        array = aligned
    try:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    except (RuntimeError, TypeError, ValueError, BufferError, tf.errors.OpError):
        return tf.constant(array)
