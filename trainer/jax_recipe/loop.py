"""Training steps and evaluation; each step is dispatched while the one before it still runs."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from trainer.jax_recipe import model
from trainer.measures import Call, Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainer.data.evaluation import Padded
    from trainer.jax_recipe.devices import Devices
    from trainer.jax_recipe.peers import SlicePeers
    from trainer.jax_recipe.reading import Reading


class State(NamedTuple):
    """What training changes."""

    weights: model.Weights
    optimizer: Any


class Loop:
    """Runs training steps on all devices, and evaluation on those of this process.

    Args:
        devices: where.
        optimizer: turns gradients into changes.
        state: what is trained; taken over.
        batch_size: global batch.
        compute_type: type that the model computes in.
        accumulate: parts in which each device computes its share of the gradient.
    """

    def __init__(
        self,
        devices: Devices,
        optimizer: optax.GradientTransformation,
        state: State,
        *,
        batch_size: int,
        compute_type: Any,
        accumulate: int,
    ) -> None:
        self.state = state
        self._devices = devices
        self._batch_size = batch_size
        self._compute_type = compute_type
        self.compute_name = str(jnp.dtype(compute_type))
        self._parts = accumulate
        self._optimizer = optimizer
        self._zero = jax.device_put(np.zeros(3, np.float32), devices.everywhere)
        self._totals = self._zero
        self._train = jax.jit(self._step, donate_argnums=(0,))
        self._evaluate = jax.jit(partial(_evaluate, compute_type=compute_type))
        self._since = time.monotonic()

    def compile(self, images: Any, labels: Any) -> None:
        """Compile the training step for batches like this one."""
        placed = self._placed((images, labels))
        self._train = self._train.lower(self.state, self._totals, *placed).compile()
        self._since = time.monotonic()

    def run(self, batches: Reading, steps: int) -> Call:
        """Run that many steps; ends after one that goes wrong."""
        waited = 0.0
        times: list[tuple[float, bool]] = []
        last, pending = time.monotonic(), None
        for _ in range(steps):
            began = time.monotonic()
            batch = batches.next()
            waited += time.monotonic() - began
            self.state, self._totals, health = self._train(
                self.state, self._totals, *self._placed(batch)
            )
            if pending is not None:
                last = self._await(pending, last, times)
                if not times[-1][1]:
                    break
            pending = health
        if pending is not None and (not times or times[-1][1]):
            self._await(pending, last, times)
        durations = np.array([seconds for seconds, _ in times])
        return Call(len(times), waited, durations, all(good for _, good in times))

    @staticmethod
    def _await(health: Any, last: float, times: list[tuple[float, bool]]) -> float:
        good = math.isfinite(float(health.addressable_data(0)))
        now = time.monotonic()
        times.append((now - last, good))
        return now

    def _placed(self, batch: tuple[Any, Any]) -> tuple[Any, ...]:
        place = self._devices.batch
        return tuple(
            jax.make_array_from_process_local_data(place, part, (self._batch_size, *part.shape[1:]))
            for part in batch
        )

    def _step(self, state: State, totals: Any, images: Any, labels: Any) -> Any:
        """Return the next state, the totals, and a number that is finite if all went well."""
        sums, gradients = self._gradients(state.weights, images, labels)
        changes, optimizer = self._optimizer.update(gradients, state.optimizer, state.weights)
        weights = optax.apply_updates(state.weights, changes)
        health = sums[0] * 0.0
        for gradient in jax.tree.leaves(gradients):
            health += gradient.sum() * 0.0
        return State(weights, optimizer), totals + sums, health

    def _gradients(self, weights: model.Weights, images: Any, labels: Any) -> tuple[Any, Any]:
        compute = jax.grad(self._loss, has_aux=True)
        if self._parts == 1:
            gradients, sums = compute(weights, images, labels)
            return sums, gradients

        def one(carry: Any, part: Any) -> tuple[Any, None]:
            gradients, sums = compute(weights, *part)
            return jax.tree.map(jnp.add, carry, (sums, gradients)), None

        nothing = (jnp.zeros(3), jax.tree.map(jnp.zeros_like, weights))
        added, _ = jax.lax.scan(one, nothing, (self._in_parts(images), self._in_parts(labels)))
        sums, gradients = added
        return sums, gradients

    def _in_parts(self, array: Any) -> Any:
        """Return [parts, ...] so that each part has some of every device's examples."""
        count, shape = self._devices.count, array.shape[1:]
        split = array.reshape(count, self._parts, -1, *shape)
        return split.swapaxes(0, 1).reshape(self._parts, -1, *shape)

    def _loss(self, weights: model.Weights, images: Any, labels: Any) -> tuple[Any, Any]:
        losses, right = _judged(weights, images, labels, self._compute_type)
        sums = jnp.stack([losses.sum(), right.sum(), jnp.float32(len(labels))])
        return losses.sum() / self._batch_size, sums

    def take_measures(self, steps: int, waited_s: float, computed_s: float) -> Measured:
        """Return the measures since the last call of this method, and begin anew."""
        sums = np.asarray(self._totals.addressable_data(0))
        self._totals = self._zero
        now = time.monotonic()
        wall, self._since = max(now - self._since, 1e-9), now
        return _measured(sums, steps=steps, wall=wall, waited=waited_s, computed=computed_s)

    def evaluate(
        self, batches: Iterator[Padded], peers: SlicePeers, cancelled: Callable[[], bool]
    ) -> Measured | None:
        """Return loss and accuracy over the held-out batches of all processes.

        None in each of them if one was asked to stop.
        """
        began = time.monotonic()
        weights = jax.tree.map(lambda leaf: leaf.addressable_data(0), self.state.weights)
        weights = jax.device_put(weights, self._devices.here)
        sums, stopped = np.zeros(3), False
        for batch in batches:
            stopped = stopped or cancelled()
            if stopped:
                break
            placed = (jax.device_put(part, self._devices.batch_here) for part in batch)
            sums += np.asarray(self._evaluate(weights, *placed))
        found = peers.gather([*sums, float(stopped)])
        if found[:, 3].any():
            return None
        wall = max(time.monotonic() - began, 1e-9)
        return _measured(found[:, :3].sum(0), steps=0, wall=wall, waited=0.0, computed=0.0)


def _judged(weights: model.Weights, images: Any, labels: Any, compute_type: Any) -> tuple[Any, Any]:
    logits = model.apply(weights, images, compute_type)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses, (logits.argmax(-1) == labels).astype(jnp.float32)


def _evaluate(
    weights: model.Weights, images: Any, labels: Any, counted: Any, *, compute_type: Any
) -> Any:
    losses, right = _judged(weights, images, labels, compute_type)
    return jnp.stack([(losses * counted).sum(), (right * counted).sum(), counted.sum()])


def _measured(sums: Any, *, steps: int, wall: float, waited: float, computed: float) -> Measured:
    loss, right, examples = (float(each) for each in sums)
    count = examples or math.nan
    return Measured(steps, wall, waited, computed, loss / count, right / count)
