"""The curve of a training run, from the trainer's own `step` events in the log."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.metric import MetricPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tpudash.domain.log import LogEntry

CURVE_UNITS: Final[Mapping[str, str]] = {
    "loss": "1",
    "accuracy": "1",
    "examples_per_second": "{examples}/s",
    "step_time_s": "s",
    "input_wait_fraction": "1",
    "device_fraction": "1",
}
"""Figures of a `step` event, with their UCUM units."""
SPEED_WINDOW: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class StepPoint:
    """One `step` event.

    Attributes:
        values: The figures that it carried, by their name in `CURVE_UNITS`.
    """

    time: datetime
    attempt: int
    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TrainingCurve:
    """All `step` events of one run, by attempt and time.

    Steps that were lost and done again are in it twice, told apart by their attempt.
    """

    run: str
    points: tuple[StepPoint, ...] = ()

    @property
    def last(self) -> StepPoint | None:
        """The newest event, or None."""
        return self.points[-1] if self.points else None

    def history(self, figure: str) -> tuple[MetricPoint, ...]:
        """Return one figure over time, oldest first."""
        return tuple(
            MetricPoint(point.time, point.values[figure])
            for point in self.points
            if figure in point.values
        )

    def mean(self, figure: str, last: int = 20) -> float | None:
        """Return the mean of a figure over the newest events of the newest attempt."""
        newest = self._newest_attempt()
        values = [point.values[figure] for point in newest if figure in point.values][-last:]
        return sum(values) / len(values) if values else None

    def steps_per_second(self, window: timedelta = SPEED_WINDOW) -> float | None:
        """Return the speed over the newest events of the newest attempt, or None."""
        newest = self._newest_attempt()
        if not newest:
            return None
        end = newest[-1]
        start = next(point for point in newest if end.time - point.time <= window)
        seconds = (end.time - start.time).total_seconds()
        steps = end.step - start.step
        return steps / seconds if seconds > 0 and steps > 0 else None

    def _newest_attempt(self) -> tuple[StepPoint, ...]:
        if not self.points:
            return ()
        attempt = self.points[-1].attempt
        return tuple(point for point in self.points if point.attempt == attempt)


def training_curve(entries: Iterable[LogEntry], run: str) -> TrainingCurve:
    """Collect the `step` events of one run; what is not a finite number is left out.

    Args:
        entries: Log entries of any run, in any order, each possibly more than once.
        run: Name of the run.
    """
    found: dict[tuple[int, datetime, int], StepPoint] = {}
    for entry in entries:
        if entry.run != run or entry.event != "step":
            continue
        point = _point(entry)
        if point is not None:
            found[point.attempt, point.time, point.step] = point
    return TrainingCurve(run, tuple(found[key] for key in sorted(found)))


def number_in(payload: Mapping[str, Any] | None, key: str) -> float | None:
    """Return a finite number of a structured payload, or None."""
    value = payload.get(key) if payload else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _point(entry: LogEntry) -> StepPoint | None:
    step = number_in(entry.payload, "step")
    attempt = entry.attempt or number_in(entry.payload, "attempt") or 0
    if step is None:
        return None
    figures = ((name, number_in(entry.payload, name)) for name in CURVE_UNITS)
    values = {name: value for name, value in figures if value is not None}
    return StepPoint(entry.timestamp, int(attempt), int(step), values)
