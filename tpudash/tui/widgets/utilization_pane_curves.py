"""Training curves out of the trainer's own step events, as the log ring receives them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.logtext.events import figure
from tpudash.store.derived import flops_told

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.store.log_ring import LogRing
    from tpudash.store.training_curve import TrainingCurve
    from tpudash.tui.widgets.spark import Sample

CURVES: Final = {
    "loss": "loss",
    "examples_per_second": "examples/s",
    "step_time_s": "step time",
    "input_wait_fraction": "input wait",
}
"""Fields of a step event, and how they are called on the screen."""
MAX_STEPS: Final = 2_000
KEPT_WHOLE: Final = 500
STRETCHES: Final = 1_000
"""How many of the newest steps are never left out when a curve is thinned, and how many stretches
of time the older ones are thinned to."""
MAX_RUNS: Final = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One step event."""

    time: datetime
    step: int | None
    target: int | None
    figures: dict[str, float]


class CurveBook:
    """The newest steps of every run; reads only what the ring got since the last time."""

    def __init__(self, ring: LogRing) -> None:
        self._ring = ring
        self._arrived = 0
        self._remembered: set[str] = set()
        self._flops: dict[str, float] = {}
        self._steps: defaultdict[str, list[Step]] = defaultdict(list)

    def sync(self) -> bool:
        """Take in new step events; returns whether there were any."""
        if self._arrived == self._ring.arrived:
            return False
        tail = self._ring.tail_since(self._arrived)
        fresh = [entry for number, entry in tail if number >= self._arrived]
        self._arrived = self._ring.arrived
        found = False
        for entry in fresh:
            if entry.run and entry.event == "step":
                self._add(entry.run, entry)
                found = True
            elif entry.run and entry.event in {"start", "stage", "finish"}:
                told = flops_told(entry)
                if told is not None and len(self._flops) < MAX_RUNS:
                    self._flops[entry.run] = told
        return found

    def remember(self, curves: Iterable[TrainingCurve]) -> bool:
        """Put in front what earlier sessions saw of runs; returns whether that was new."""
        found = False
        for curve in curves:
            if curve.run in self._remembered or not curve.points:
                continue
            self._remembered.add(curve.run)
            known = self._steps[curve.run]
            first = min((one.time for one in known), default=None)
            older = [
                Step(point.time, point.step, None, dict(point.values))
                for point in curve.points
                if first is None or point.time < first
            ]
            if older:
                self._steps[curve.run] = _thinned([*older, *known])
                found = True
        return found

    def flops(self, run: str) -> float | None:
        """Return what an example of a run costs in FLOPs, where an event told it."""
        return self._flops.get(run)

    def samples(self, run: str, name: str) -> list[Sample]:
        """Return one figure of a run as (POSIX time, value), oldest first."""
        steps = self._steps.get(run, ())
        return sorted(
            (one.time.timestamp(), one.figures[name]) for one in steps if name in one.figures
        )

    def newest(self, run: str) -> Step | None:
        """Return the newest step of a run, or None."""
        return max(self._steps.get(run, ()), key=lambda one: one.time, default=None)

    def _add(self, run: str, entry: LogEntry) -> None:
        payload = entry.payload or {}
        step, target = figure(payload, "step"), figure(payload, "target_step")
        figures = {name: value for name in CURVES if (value := figure(payload, name)) is not None}
        if run not in self._steps and len(self._steps) >= MAX_RUNS:
            self._steps.pop(next(iter(self._steps)))
        self._steps[run].append(
            Step(
                entry.timestamp,
                None if step is None else int(step),
                None if target is None else int(target),
                figures,
            )
        )
        if len(self._steps[run]) > MAX_STEPS:
            self._steps[run] = _thinned(self._steps[run])


def _thinned(steps: list[Step]) -> list[Step]:
    """Keep one of the older steps for each stretch of time, so that a curve of any length fits."""
    steps = sorted(steps, key=lambda one: one.time)
    if len(steps) <= MAX_STEPS:
        return steps
    older, newest = steps[:-KEPT_WHOLE], steps[-KEPT_WHOLE:]
    start = older[0].time
    width = max((older[-1].time - start) / STRETCHES, timedelta(microseconds=1))
    kept: dict[int, Step] = {}
    for step in older:
        kept.setdefault((step.time - start) // width, step)
    return [*kept.values(), *newest]
