"""Batches of this process, one read ahead of its use."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from trainer.jax_recipe.order import epoch_order

if TYPE_CHECKING:
    from trainer.data.share import Share
    from trainer.jax_recipe.examples import Examples


class Reading:
    """The batches from a step on: an epoch is one full permutation, a batch the next piece of it.

    Args:
        examples: what is read.
        batch_size: global batch; each host reads its own part of it.
        seed: names the orders.
        first_step: steps done.
        last_step: step after which nothing is read.
        share: which host this is.
    """

    def __init__(
        self,
        examples: Examples,
        *,
        batch_size: int,
        seed: int,
        first_step: int,
        last_step: int,
        share: Share,
    ) -> None:
        self._examples = examples
        self._batch_size = batch_size
        self._seed = seed
        self._step = first_step
        self._last_step = last_step
        self._share = share
        self._order: tuple[int, Any] = (-1, None)
        self._pool = ThreadPoolExecutor(1, "input")
        self._ahead: Future[tuple[Any, Any]] = self._pool.submit(self._read, first_step)

    def first(self) -> tuple[Any, Any]:
        """Return the next batch without taking it."""
        return self._ahead.result()

    def next(self) -> tuple[Any, Any]:
        """Return the images and labels of this host for the next step.

        Raises:
            TrainerError: the input cannot be read.
        """
        batch = self._ahead.result()
        self._step += 1
        if self._step < self._last_step:
            self._ahead = self._pool.submit(self._read, self._step)
        return batch

    def _read(self, step: int) -> tuple[Any, Any]:
        count = self._examples.count
        epoch, within = divmod(step, count // self._batch_size)
        if self._order[0] != epoch:
            self._order = (epoch, epoch_order(self._seed, epoch, count))
        each = self._batch_size // self._share.hosts
        begin = within * self._batch_size + self._share.host * each
        return self._examples.take(self._order[1][begin : begin + each])
