"""The learning rate as a pure function of the step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

if TYPE_CHECKING:
    from trainer.config import Config


class Schedule(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Warm-up along a line, then constant, or down along a line or a cosine.

    It also stands for a constant rate: an optimizer keeps a plain rate in its checkpoint, and a
    resumed run would go on with the old one whatever its flags say.

    Args:
        kind: constant, linear or cosine.
        rate: the highest learning rate.
        warmup_steps: steps until it is reached; the first step gets the first part of it.
        total_steps: step at which `final_share` of the rate is reached.
        final_share: what is left of the rate at the end, 0 to 1.
    """

    def __init__(
        self, kind: str, rate: float, *, warmup_steps: int, total_steps: int, final_share: float
    ) -> None:
        super().__init__()
        self._kind = kind
        self._rate = rate
        self._warmup = warmup_steps
        self._total = max(total_steps, warmup_steps + 1)
        self._final = final_share

    def __call__(self, step: Any) -> Any:
        """Return the rate of the step after `step` steps, a float32 tensor."""
        done = tf.cast(step, tf.float32)
        share = tf.constant(1.0)
        if self._kind != "constant":
            way = (done - self._warmup) / (self._total - self._warmup)
            way = tf.clip_by_value(way, 0.0, 1.0)
            left = 1.0 - way if self._kind == "linear" else (1.0 + tf.cos(math.pi * way)) / 2.0
            share = self._final + (1.0 - self._final) * left
        if self._warmup:
            share = tf.minimum(share, (done + 1.0) / self._warmup)
        return self._rate * share

    def at(self, step: int) -> float:
        """Return the rate of the step after `step` steps."""
        return float(self(tf.constant(step, tf.int64)))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments, as Keras wants to be able to print them."""
        return {
            "kind": self._kind,
            "rate": self._rate,
            "warmup_steps": self._warmup,
            "total_steps": self._total,
            "final_share": self._final,
        }

    def description(self) -> str:
        """Return what a resumed run compares, to tell whether it goes on as it began."""
        if self._kind == "constant":
            return f"constant, warm-up {self._warmup}"
        return f"{self._kind} to {self._final} at {self._total}, warm-up {self._warmup}"


def make_schedule(config: Config, total_steps: int) -> Schedule:
    """Return the schedule that the settings name."""
    return Schedule(
        config.schedule,
        config.learning_rate,
        warmup_steps=config.warmup_steps,
        total_steps=total_steps,
        final_share=config.final_rate,
    )
