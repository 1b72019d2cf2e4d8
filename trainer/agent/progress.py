"""Turns the trainer's events into changes of the attempt's record and into the run's result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trainer.events import timestamp

if TYPE_CHECKING:
    from trainer.agent.record import Recorder

RESULT_FILE = "result.json"
_MOVES = ("restore", "step", "worker", "checkpoint", "eval", "finish", "serve")
"""Events that show that the trainer moves on; one that hangs sends none of them."""
_SEVERITIES = ("DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")


def parse_event(line: str) -> dict[str, Any] | None:
    """Return the event on a line of the trainer's stdout, or None if it is other text."""
    if not line.startswith("{"):
        return None
    try:
        # JSON has no NaN, but Python's reader takes it and Cloud Logging does not.
        event = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return None
    known = isinstance(event, dict) and isinstance(event.get("event"), str)
    return event if known else None


def severity_of(event: dict[str, Any]) -> str:
    """Return the event's severity, INFO if it has none that Cloud Logging knows."""
    severity = event.get("severity")
    return severity if severity in _SEVERITIES else "INFO"


class Progress:
    """Follows the events of all trainer processes of one attempt.

    Attributes:
        last_step: newest step seen in this or, at first, an earlier life; -1 unknown.
        best_step: furthest step ever reported in this attempt, to tell progress.
        finish: the `finish` event, once it came.
        training: whether the current process has begun to train, or to serve.
        served: whether it has answered requests, so that its end is not the fault of its start.
    """

    def __init__(self, recorder: Recorder, last_step: int) -> None:
        self._recorder = recorder
        self.last_step = last_step
        self.best_step = recorder.record.checkpoint_step or 0
        self.finish: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.training = False
        self.served = False

    def begin_process(self) -> None:
        """Note that a new trainer process starts."""
        self.training = self.served = False
        self.error = None
        # Importing, connecting and tracing are not training: their time is counted otherwise.
        self._recorder.update(
            urgent=True, state="STARTING", stage=None, error=None, step_updated=None
        )

    def take(self, event: dict[str, Any]) -> None:
        """Take in one event; kinds that are not known change nothing."""
        handler = getattr(self, f"_on_{event['event']}", None)
        if event["event"] in _MOVES:
            # Written with the next change of the record; by itself it is no news.
            self._recorder.record.step_updated = timestamp()
        if handler is not None:
            handler(event)

    def _on_stage(self, event: dict[str, Any]) -> None:
        self._recorder.update(urgent=True, stage=event.get("stage"))

    def _on_restore(self, event: dict[str, Any]) -> None:
        record = self._recorder.record
        step, lost = event.get("step"), event.get("steps_lost")
        changes: dict[str, Any] = {"step": step}
        if record.restored_step is None:
            changes["restored_step"] = step
        if isinstance(lost, int):
            changes["steps_lost"] = (record.steps_lost or 0) + lost
        if step:
            changes["checkpoint_step"] = step
        quarantined = event.get("quarantined")
        if isinstance(quarantined, list):
            changes["quarantined"] = [*record.quarantined, *quarantined]
        self._recorder.update(urgent=True, **changes)

    def _on_step(self, event: dict[str, Any]) -> None:
        step = event.get("step")
        if not isinstance(step, int):
            return
        self.last_step = step
        self.best_step = max(self.best_step, step)
        changes = {
            name: event[name]
            for name in ("target_step", "loss", "accuracy", "examples_per_second")
            if name in event
        }
        first = not self.training
        self.training = True
        self._recorder.update(urgent=first, state="TRAINING", stage=None, step=step, **changes)

    def _on_worker(self, event: dict[str, Any]) -> None:
        """Note where a worker is that leaves it to worker 0 to tell of the steps."""
        self._on_step(event)

    def _on_serve(self, event: dict[str, Any]) -> None:
        if not event.get("ready"):
            return
        first = not self.served
        self.training = self.served = True
        self._recorder.update(urgent=first, state="SERVING", stage=None)

    def _on_checkpoint(self, event: dict[str, Any]) -> None:
        step = event.get("step")
        if isinstance(step, int):
            self.last_step = max(self.last_step, step)
            self._recorder.update(urgent=True, checkpoint_step=step, step=step)

    def _on_error(self, event: dict[str, Any]) -> None:
        self.error = {name: event.get(name) for name in ("class", "detail", "hint")}
        self._recorder.update(urgent=True, error=self.error)

    def _on_finish(self, event: dict[str, Any]) -> None:
        self.finish = event
        self._recorder.update(step=event.get("step"))

    def result(self) -> dict[str, Any]:
        """Return the content of `result.json`; a recipe without events has no metrics."""
        record, event = self._recorder.record, self.finish or {}
        metrics = event.get("metrics")
        return {
            "schema": 1,
            "run": record.run,
            "attempt": record.attempt,
            "finished": timestamp(),
            "step": event.get("step", record.step),
            "metrics": {
                "loss": record.loss,
                "accuracy": record.accuracy,
                **(metrics if isinstance(metrics, dict) else {}),
            },
            "export": event.get("export"),
        }
