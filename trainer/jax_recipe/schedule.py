"""The learning rate as a pure function of the step, for optax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

if TYPE_CHECKING:
    from trainer.schedule_shape import ScheduleShape


def rate(shape: ScheduleShape, step: Any) -> Any:
    """Return the rate of the step after `step` steps, float32."""
    done = jnp.asarray(step, jnp.float32)
    share: Any = jnp.float32(1.0)
    if shape.kind != "constant":
        way = jnp.clip((done - shape.warmup_steps) / shape.steps_after_warmup, 0.0, 1.0)
        left = 1.0 - way if shape.kind == "linear" else (1.0 + jnp.cos(math.pi * way)) / 2.0
        share = shape.final_share + (1.0 - shape.final_share) * left
    if shape.warmup_steps:
        share = jnp.minimum(share, (done + 1.0) / shape.warmup_steps)
    return shape.rate * share
