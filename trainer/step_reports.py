"""The `step` events, at most two a second, and the performance of the whole life."""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.events import EventWriter, finite

if TYPE_CHECKING:
    from trainer.engine import Engine
    from trainer.measures import Call

EVENT_SECONDS = 0.5
_KEPT_TIMES = 100_000


class StepReports:
    """Collects device calls between two `step` events.

    Args:
        events: where the events go.
        engine: asked for loss and accuracy.
        batch_size: examples of a step.
    """

    def __init__(self, events: EventWriter, engine: Engine, *, batch_size: int) -> None:
        self._events = events
        self._engine = engine
        self._batch_size = batch_size
        self._last_event = 0.0
        self._steps = 0
        self._waited = self._computed = 0.0
        self._calls = 0
        self._times: deque[float] = deque(maxlen=_KEPT_TIMES)
        self._all_steps, self._all_wall, self._all_waited = 0, 0.0, 0.0
        self._cpu_at_first = 0.0

    def add(self, call: Call) -> None:
        """Take in a device call."""
        self._steps += call.steps
        self._waited += call.waited_s
        self._computed += float(call.step_times_s.sum()) - call.waited_s
        self._calls += 1
        if self._calls > 1:
            # The first call also sets up the device's memory and the input's threads.
            self._times.extend(call.step_times_s.tolist())

    @property
    def due(self) -> bool:
        """Whether it is time for an event: at the first step, and each half second."""
        return time.monotonic() - self._last_event >= EVENT_SECONDS

    def tell(self, step: int, learning_rate: float) -> dict[str, Any] | None:
        """Write the event of what was collected. Returns its numbers, None if there were none."""
        if not self._steps:
            return None
        measured = self._engine.take_measures(self._steps, self._waited, self._computed)
        if self._last_event:
            self._all_steps += measured.steps
            self._all_wall += measured.wall_s
            self._all_waited += measured.waited_s
        else:
            self._cpu_at_first = time.process_time()
        self._last_event = time.monotonic()
        self._steps, self._waited, self._computed = 0, 0.0, 0.0
        step_time = measured.wall_s / measured.steps
        numbers: dict[str, Any] = {
            "loss": finite(measured.loss),
            "accuracy": finite(measured.accuracy),
            "examples_per_second": finite(self._batch_size / step_time, 1),
            "step_time_s": finite(step_time),
            "input_wait_fraction": finite(min(1.0, measured.waited_s / measured.wall_s), 4),
            "device_fraction": finite(min(1.0, measured.computed_s / measured.wall_s), 4),
            "learning_rate": finite(learning_rate, 9),
        }
        self._events.emit(
            "step",
            f"step {step}/{self._engine.target} loss {measured.loss:.4f} "
            f"accuracy {measured.accuracy:.4f}",
            step=step,
            target_step=self._engine.target,
            epoch=(step - 1) // self._engine.steps_per_epoch,
            **numbers,
        )
        return numbers

    def performance(self, flops_per_example: int) -> dict[str, Any]:
        """Return the figures of this life after its first event, for comparisons."""
        times = np.array(self._times) if self._times else np.array([np.nan])
        p50, p95, p99 = (float(each) for each in np.percentile(times, [50, 95, 99]))
        rate = self._all_steps * self._batch_size / self._all_wall if self._all_wall else None
        waited = self._all_waited / self._all_wall if self._all_wall else None
        cpu = time.process_time() - self._cpu_at_first
        examples = self._all_steps * self._batch_size
        return {
            "steps": self._all_steps,
            "seconds": finite(self._all_wall, 3),
            "examples_per_second": finite(rate, 1),
            "cpu_seconds_per_1000_examples": finite(cpu * 1000 / examples if examples else None, 4),
            "step_time_p50_s": finite(p50),
            "step_time_p95_s": finite(p95),
            "step_time_p99_s": finite(p99),
            "input_wait_fraction": finite(waited, 4),
            "peak_memory_bytes": peak_memory_bytes(),
            "flops_per_example": flops_per_example,
        }


def peak_memory_bytes() -> int:
    """Return the most host memory that this process ever used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
