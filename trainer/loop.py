"""The training loop: several steps per device call, with measured shares of waiting and computing.

How many steps run in one call changes nothing in the result; it only decides how soon the process
can react to a notice, so the number follows the measured time of a step.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from trainer.model import build_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.devices import Device


@dataclass(frozen=True)
class Measured:
    """What one or more device calls did.

    Attributes:
        steps: training steps.
        wall_s: wall time of the calls and of what lay between them.
        waited_s: time inside the calls spent waiting for the input.
        computed_s: time inside the calls spent in device steps.
        loss: mean loss per example.
        accuracy: share of right answers.
    """

    steps: int
    wall_s: float
    waited_s: float
    computed_s: float
    loss: float
    accuracy: float


class CallSizer:
    """Chooses how many steps run in one device call.

    Starts with one and doubles at most, so that a slow device is never given a long call blindly.
    """

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self.steps = 1

    def observe(self, steps: int, seconds: float) -> None:
        """Take in how long a call of `steps` steps lasted."""
        wanted = int(self._target_s * steps / max(seconds, 1e-6))
        self.steps = max(1, min(wanted, self.steps * 2, 10_000))


class TrainingState:
    """Model, optimizer and metrics, made inside the strategy's scope."""

    def __init__(self, device: Device, *, compute_type: str, seed: int, rate: float) -> None:
        policy = "mixed_bfloat16" if compute_type == "bfloat16" else "float32"
        keras.mixed_precision.set_global_policy(policy)
        keras.utils.set_random_seed(seed)
        self.device = device
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        with device.strategy.scope():
            self.model = build_model()
            self.optimizer = keras.optimizers.Adam(rate)
            self.optimizer.build(self.model.trainable_variables)
            self.totals = [_total("loss"), _total("right"), _total("examples")]


def _total(name: str) -> Any:
    return tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
        name=name,
    )


class TrainingLoop:
    """Runs training steps and evaluation on the device."""

    def __init__(self, state: TrainingState, *, batch_size: int) -> None:
        self._state = state
        self._batch_size = batch_size
        self._run: Callable[..., Any] = tf.function(self._run_steps, jit_compile=False)
        self._evaluate: Callable[..., Any] = tf.function(self._evaluate_batch, jit_compile=False)
        self._iterator: Any = None
        self._since = 0.0

    def start(self, dataset: Any) -> None:
        """Take the data from its beginning and trace the training function."""
        strategy = self._state.device.strategy
        self._iterator = iter(strategy.experimental_distribute_dataset(dataset))
        self._run.get_concrete_function(self._iterator, tf.constant(1))  # type: ignore[attr-defined]
        self._since = time.monotonic()

    def run(self, steps: int) -> tuple[float, float]:
        """Run that many steps in one device call.

        Returns:
            Seconds spent waiting for input, and inside device steps.
        """
        waited, computed = self._run(self._iterator, tf.constant(steps))
        return float(waited), float(computed)

    def take_measures(self, steps: int, waited_s: float, computed_s: float) -> Measured:
        """Return the measures since the last call of this method, and begin anew."""
        loss, right, examples = (float(total.numpy()) for total in self._state.totals)
        for total in self._state.totals:
            total.assign(0.0)
        now = time.monotonic()
        wall = max(now - self._since, 1e-9)
        self._since = now
        count = examples or math.nan
        return Measured(steps, wall, waited_s, computed_s, loss / count, right / count)

    def _run_steps(self, iterator: Any, count: Any) -> tuple[Any, Any]:
        waited = tf.zeros([], tf.float64)
        computed = tf.zeros([], tf.float64)
        for _ in tf.range(count):
            with tf.control_dependencies([waited, computed]):
                began = tf.timestamp()
            with tf.control_dependencies([began]):
                batch = next(iterator)
            with tf.control_dependencies(self._local(batch)):
                ready = tf.timestamp()
            with tf.control_dependencies([ready]):
                loss = self._state.device.strategy.run(self._train_batch, args=batch)
            with tf.control_dependencies(self._local(loss)):
                done = tf.timestamp()
            waited += ready - began
            computed += done - ready
        return waited, computed

    def _local(self, values: Any) -> list[Any]:
        strategy = self._state.device.strategy
        parts = values if isinstance(values, tuple) else (values,)
        local = [strategy.experimental_local_results(part) for part in parts]
        return list(tf.nest.flatten(local))

    def _train_batch(self, images: Any, labels: Any) -> Any:
        model, optimizer = self._state.model, self._state.optimizer
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = _losses(labels, logits)
            loss = tf.reduce_sum(losses) / self._batch_size
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self._count(losses, labels, logits, tf.ones_like(losses))
        # Reading the weights makes the result depend on the update, so the time includes it.
        with tf.control_dependencies([tf.identity(variable.value) for variable in variables]):
            return tf.identity(loss)

    def _count(self, losses: Any, labels: Any, logits: Any, weights: Any) -> None:
        right = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), labels), tf.float32)
        sums = (losses * weights, right * weights, weights)
        for total, values in zip(self._state.totals, sums, strict=True):
            total.assign_add(tf.reduce_sum(values))

    def evaluate(self, batches: Any) -> Measured:
        """Return loss and accuracy over held-out batches of (images, labels, weights)."""
        self.take_measures(0, 0.0, 0.0)
        strategy = self._state.device.strategy
        replicas = self._state.device.count
        for batch in batches:

            def part(context: Any, arrays: Any = batch) -> Any:
                size = len(arrays[0]) // replicas
                begin = context.replica_id_in_sync_group * size
                return tuple(tf.constant(array[begin : begin + size]) for array in arrays)

            self._evaluate(strategy.experimental_distribute_values_from_function(part))
        return self.take_measures(0, 0.0, 0.0)

    def _evaluate_batch(self, batch: Any) -> None:
        self._state.device.strategy.run(self._evaluate_replica, args=batch)

    def _evaluate_replica(self, images: Any, labels: Any, weights: Any) -> None:
        logits = self._state.model(images, training=False)
        self._count(_losses(labels, logits), labels, logits, weights)


def _losses(labels: Any, logits: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
