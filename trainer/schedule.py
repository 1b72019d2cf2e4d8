"""The learning rate as a pure function of the step."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

if TYPE_CHECKING:
    from trainer.schedule_shape import ScheduleShape


class Schedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A course of the learning rate as Keras wants it.

    It also stands for a constant rate: an optimizer keeps a plain rate in its checkpoint, and a
    resumed run would go on with the old one whatever its flags say.
    """

    def __init__(self, shape: ScheduleShape) -> None:
        super().__init__()
        self._shape = shape

    def __call__(self, step: Any) -> Any:
        """Return the rate of the step after `step` steps, a float32 tensor."""
        shape = self._shape
        done = tf.cast(step, tf.float32)
        share = tf.constant(1.0)
        if shape.kind != "constant":
            way = (done - shape.warmup_steps) / shape.steps_after_warmup
            way = tf.clip_by_value(way, 0.0, 1.0)
            left = 1.0 - way if shape.kind == "linear" else (1.0 + tf.cos(math.pi * way)) / 2.0
            share = shape.final_share + (1.0 - shape.final_share) * left
        if shape.warmup_steps:
            share = tf.minimum(share, (done + 1.0) / shape.warmup_steps)
        return shape.rate * share

    def at(self, step: int) -> float:
        """Return the rate of the step after `step` steps."""
        return float(self(tf.constant(step, tf.int64)))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments, as Keras wants to be able to print them."""
        return dataclasses.asdict(self._shape)

    def description(self) -> str:
        """Return what a resumed run compares, to tell whether it goes on as it began."""
        return self._shape.description()
