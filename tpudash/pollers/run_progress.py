"""The progress of runs as their log tells it, which is newer than their records in the bucket."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.domain.run import Run

FINAL_STATES: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})
TURNING_POINTS: Final = frozenset({"start", "restore", "preempt", "error", "finish"})
"""Events after which nodes and records look different, so that both are worth asking for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest facts of one attempt."""

    attempt: int
    heard: datetime
    step: int | None = None
    target_step: int | None = None
    checkpoint_step: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    examples_per_second: float | None = None


class ProgressBook:
    """Keeps the newest progress of each run, from `step`, `restore` and `checkpoint` events."""

    def __init__(self) -> None:
        self._of: dict[str, Progress] = {}

    def take(self, entries: Iterable[LogEntry]) -> bool:
        """Take in log entries, and say whether one of them was a turning point."""
        turned = False
        for entry in entries:
            event = entry.event
            if event is None or entry.run is None or entry.attempt is None:
                continue
            turned = turned or event in TURNING_POINTS
            known = self._of.get(entry.run)
            if known is not None and (entry.attempt, entry.timestamp) < (
                known.attempt,
                known.heard,
            ):
                continue
            if known is None or entry.attempt > known.attempt:
                known = Progress(entry.attempt, entry.timestamp)
            self._of[entry.run] = _moved(known, entry, event)
        return turned

    def laid_over(self, run: Run) -> Run:
        """Return the run with what its log says, where that is newer than its record."""
        progress = self._of.get(run.name)
        if progress is None or run.state in FINAL_STATES:
            return run
        newest = max((record.attempt for record in run.attempts), default=0)
        is_older = run.last_heard is not None and progress.heard <= run.last_heard
        if progress.attempt < newest or is_older:
            return run
        return replace(
            run,
            last_heard=progress.heard,
            step=_either(progress.step, run.step),
            target_step=_either(progress.target_step, run.target_step),
            checkpoint_step=_either(progress.checkpoint_step, run.checkpoint_step),
            loss=_either(progress.loss, run.loss),
            accuracy=_either(progress.accuracy, run.accuracy),
            examples_per_second=_either(progress.examples_per_second, run.examples_per_second),
        )


def _moved(known: Progress, entry: LogEntry, event: str) -> Progress:
    payload: Mapping[str, Any] = entry.payload or {}
    step = _whole(payload.get("step"))
    moved = replace(known, heard=entry.timestamp)
    if event == "step":
        return replace(
            moved,
            step=_either(step, moved.step),
            target_step=_either(_whole(payload.get("target_step")), moved.target_step),
            loss=_real(payload.get("loss")),
            accuracy=_real(payload.get("accuracy")),
            examples_per_second=_real(payload.get("examples_per_second")),
        )
    if event in {"checkpoint", "restore"}:
        return replace(
            moved,
            step=_either(step, moved.step),
            checkpoint_step=_either(step, moved.checkpoint_step),
        )
    return moved


def _either(first: Any, second: Any) -> Any:
    return second if first is None else first


def _whole(value: object) -> int | None:
    """Return a whole number; a protobuf Struct carries every number as a double."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
