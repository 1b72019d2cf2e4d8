"""What training changes: the model, its optimizer, the step, and running totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from trainer.model import build_model

if TYPE_CHECKING:
    from trainer.devices import Device
    from trainer.model_specs import ModelSpec
    from trainer.schedule import Schedule


class TrainingState:
    """Model, optimizer and metrics, made inside the strategy's scope."""

    def __init__(
        self,
        device: Device,
        spec: ModelSpec,
        schedule: Schedule,
        *,
        compute_type: str,
        seed: int,
    ) -> None:
        policy = "mixed_bfloat16" if compute_type == "bfloat16" else "float32"
        keras.mixed_precision.set_global_policy(policy)
        keras.utils.set_random_seed(seed)
        self.device = device
        self.spec = spec
        self.schedule = schedule
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        with device.strategy.scope():
            self.model = build_model(spec)
            self.optimizer = keras.optimizers.Adam(schedule)
            self.optimizer.build(self.model.trainable_variables)
            self.totals = [_total("loss"), _total("right"), _total("examples")]
        self._all_finite = tf.function(self._check_weights, jit_compile=False, autograph=False)

    def variables(self) -> dict[str, list[Any]]:
        """Return the variables that a resumed run needs, by what they belong to."""
        return {
            "model": [each.value for each in self.model.variables],
            "optimizer": [each.value for each in self.optimizer.variables],
        }

    def weights_are_finite(self) -> bool:
        """Say whether no weight is NaN or infinite, so that the state is worth saving."""
        return bool(self._all_finite())

    def _check_weights(self) -> Any:
        sums = [tf.reduce_sum(weight.value) for weight in self.model.trainable_variables]
        return tf.math.is_finite(tf.add_n([tf.cast(each, tf.float32) * 0.0 for each in sums]))


def _total(name: str) -> Any:
    return tf.Variable(
        0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
        name=name,
    )
