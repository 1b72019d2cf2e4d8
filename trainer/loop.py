"""The training loop: several steps per device call, with measured shares of waiting and computing.

How many steps run in one call changes nothing in the result; it only decides how soon the process
can react to a notice, so the number follows the measured time of a step.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer.data.share import Share
from trainer.measures import Call, Measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.data.loading import TrainingData
    from trainer.training_state import TrainingState


class TrainingLoop:
    """Runs training steps and evaluation on the device.

    Args:
        state: what is trained.
        batch_size: global batch.
        accumulate: parts in which each replica computes its share of the gradient.
        clip_norm: largest global norm of the gradient; 0 leaves it as it is.
    """

    def __init__(
        self,
        state: TrainingState,
        *,
        batch_size: int,
        accumulate: int = 1,
        clip_norm: float = 0.0,
    ) -> None:
        self._state = state
        self._batch_size = batch_size
        self._parts = accumulate
        self._clip_norm = clip_norm
        # AutoGraph would read and rewrite every function at each start, which takes a second.
        options = {"jit_compile": False, "autograph": False}
        self._run: Callable[..., Any] = tf.function(self._run_steps, **options)
        self._evaluate: Callable[..., Any] = tf.function(self._evaluate_batch, **options)
        self._iterator: Any = None
        self._since = 0.0

    def start(self, data: TrainingData, first_step: int, last_step: int) -> None:
        """Take the data from a step on and trace the training function."""

        def pieces(context: Any) -> Any:
            hosts = context.num_input_pipelines
            replicas = context.num_replicas_in_sync // hosts
            share = Share(context.input_pipeline_id, hosts, replicas)
            return data.batches(first_step, last_step, share)

        strategy = self._state.device.strategy
        self._iterator = iter(strategy.distribute_datasets_from_function(pieces))
        self._run.get_concrete_function(self._iterator, tf.constant(1))  # type: ignore[attr-defined]
        self._since = time.monotonic()

    def run(self, steps: int) -> Call:
        """Run that many steps in one device call; a step that goes wrong ends it."""
        done, waited, times, finite = self._run(self._iterator, tf.constant(steps))
        return Call(int(done), float(waited), times.numpy()[: int(done)], bool(finite))

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

    def _run_steps(self, iterator: Any, count: Any) -> tuple[Any, Any, Any, Any]:
        def is_going(done: Any, _waited: Any, _times: Any, _last: Any, finite: Any) -> Any:
            return tf.logical_and(done < count, finite)

        def one(done: Any, waited: Any, times: Any, last: Any, _: Any) -> tuple[Any, ...]:
            waited_now, step_time, now, finite = self._timed_step(iterator, last)
            return done + 1, waited + waited_now, times.write(done, step_time), now, finite

        begin = (
            tf.constant(0),
            tf.zeros([], tf.float64),
            tf.TensorArray(tf.float64, size=count, element_shape=[]),
            tf.timestamp(),
            tf.constant(True),
        )
        done, waited, times, _, finite = tf.while_loop(is_going, one, begin, parallel_iterations=1)
        return done, waited, times.stack(), finite

    def _timed_step(self, iterator: Any, last: Any) -> tuple[Any, Any, Any, Any]:
        """Return seconds waited, seconds of the step, its end, and whether it went well."""
        with tf.control_dependencies([last]):
            began = tf.timestamp()
        with tf.control_dependencies([began]):
            batch = iterator.get_next()
        with tf.control_dependencies(self._local(batch)):
            ready = tf.timestamp()
        with tf.control_dependencies([ready]):
            health = self._state.device.strategy.run(self._train_batch, args=batch)
        healths = self._local(health)
        with tf.control_dependencies(healths):
            now = tf.timestamp()
        return ready - began, now - began, now, tf.math.is_finite(tf.add_n(healths))

    def _local(self, values: Any) -> list[Any]:
        strategy = self._state.device.strategy
        parts = values if isinstance(values, tuple) else (values,)
        local = [strategy.experimental_local_results(part) for part in parts]
        return list(tf.nest.flatten(local))

    def _train_batch(self, images: Any, labels: Any) -> Any:
        """Train on one replica's part; returns a number that is finite if all went well."""
        model, optimizer = self._state.model, self._state.optimizer
        loss, gradients = self._gradients(images, labels)
        gradients, norm = self._clip(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        # Reading the weights makes the result depend on the update, so the time includes it.
        weights = [tf.identity(variable.value) for variable in model.trainable_variables]
        with tf.control_dependencies(weights):
            return (loss + norm) * 0.0

    def _clip(self, gradients: list[Any]) -> tuple[list[Any], Any]:
        """Return gradients of a bounded norm over all replicas, and the norm of these ones."""
        if not self._clip_norm:
            return gradients, tf.linalg.global_norm(gradients)
        context = tf.distribute.get_replica_context()
        replicas = self._state.device.count
        summed = gradients
        if replicas > 1:
            summed = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        norm = tf.linalg.global_norm(summed)
        factor = self._clip_norm / tf.maximum(norm, self._clip_norm)
        return [gradient * factor for gradient in gradients], norm

    def _gradients(self, images: Any, labels: Any) -> tuple[Any, list[Any]]:
        if self._parts == 1:
            return self._gradients_of_part(images, labels)
        parts = self._parts
        shape = self._state.spec.image_shape
        image_parts = tf.reshape(images, [parts, images.shape[0] // parts, *shape])
        label_parts = tf.reshape(labels, [parts, images.shape[0] // parts])
        variables = self._state.model.trainable_variables
        zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]

        def one(part: Any, loss: Any, *sums: Any) -> Any:
            of_part, gradients = self._gradients_of_part(image_parts[part], label_parts[part])
            added = [total + each for total, each in zip(sums, gradients, strict=True)]
            return (part + 1, loss + of_part, *added)

        _, loss, *gradients = tf.while_loop(
            lambda part, *_: part < parts,
            one,
            (tf.constant(0), tf.constant(0.0), *zeros),
            parallel_iterations=1,
            maximum_iterations=parts,
        )
        return loss, gradients

    def _gradients_of_part(self, images: Any, labels: Any) -> tuple[Any, list[Any]]:
        model = self._state.model
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = _losses(labels, logits)
            loss = tf.reduce_sum(losses) / self._batch_size
        variables = [variable.value for variable in model.trainable_variables]
        gradients = tape.gradient(loss, variables)
        self._count(losses, labels, logits, tf.ones_like(losses))
        return loss, gradients

    def _count(self, losses: Any, labels: Any, logits: Any, weights: Any) -> None:
        right = tf.cast(tf.equal(tf.argmax(logits, -1, tf.int32), labels), tf.float32)
        sums = (losses * weights, right * weights, weights)
        for total, values in zip(self._state.totals, sums, strict=True):
            total.assign_add(tf.reduce_sum(values))

    def evaluate(self, batches: Any, cancelled: Callable[[], bool]) -> Measured | None:
        """Return loss and accuracy over held-out batches of (images, labels, weights).

        None if `cancelled` said yes between two batches.
        """
        self.take_measures(0, 0.0, 0.0)
        strategy = self._state.device.strategy
        replicas = self._state.device.count
        for batch in batches:
            if cancelled():
                self.take_measures(0, 0.0, 0.0)
                return None

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
