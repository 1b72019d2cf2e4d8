"""One training job from start to end: set up, restore, train, evaluate, export."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from trainer import data, devices, export
from trainer.checkpoint_files import CheckpointFolder
from trainer.checkpoints import SCHEMA, Checkpoints, Restored
from trainer.config import Config, batch_advice, events_path
from trainer.events import EventWriter, finite, last_reported_step, tell_preempted
from trainer.faults import ExitCode, TrainerError
from trainer.loop import CallSizer, Measured, TrainingLoop, TrainingState
from trainer.model import signature, weights_sha256

if TYPE_CHECKING:
    from trainer.stopping import StopRequest

STEP_EVENT_SECONDS = 0.5
"""At most two `step` events a second."""


@dataclass(frozen=True)
class _Parts:
    state: TrainingState
    loop: TrainingLoop
    checkpoints: Checkpoints
    training: data.TrainingData
    evaluation: data.EvaluationData
    target: int


class Job:
    """A training job; made once TensorFlow may be imported."""

    def __init__(
        self, config: Config, events: EventWriter, stop: StopRequest, tpu_name: str | None
    ) -> None:
        self._config = config
        self._events = events
        self._stop = stop
        self._tpu_name = tpu_name
        self._last_event = 0.0

    def execute(self) -> ExitCode:
        """Run the job to its end, or until it is asked to stop.

        Raises:
            TrainerError: it failed in a way that can be explained.
        """
        parts = self._set_up()
        self._stop.leave_at_once = None
        restored = parts.checkpoints.restore()
        self._tell_restored(restored)
        step = self._train(parts, restored.step)
        if step < parts.target:
            return self._preempted(step)
        return self._finish(parts, step)

    def _set_up(self) -> _Parts:
        config = self._config
        if self._tpu_name:
            self._events.emit("stage", f"connecting the TPU {self._tpu_name}", stage="tpu_init")
        device = devices.set_up(config, self._tpu_name)
        if config.batch_size % device.count:
            raise TrainerError(
                ExitCode.BAD_ARGUMENTS,
                "BAD_REQUEST",
                f"--batch_size {config.batch_size} cannot be split over {device.count} replicas",
                f"use a multiple of {device.count}",
            )
        for advice in batch_advice(config.batch_size, config.accelerator_type):
            self._warn(advice)
        self._events.emit("stage", "reading the data", stage="data")
        folder = CheckpointFolder(config.model_dir)
        folder.prepare()
        training, evaluation = data.load(config)
        compute = self._compute_type(device, folder)
        state = TrainingState(
            device, compute_type=compute, seed=config.seed, rate=config.learning_rate
        )
        checkpoints = Checkpoints(
            folder,
            objects={"model": state.model, "optimizer": state.optimizer},
            step=state.step,
            description=self._description(state, training, compute),
            warn=self._warn,
        )
        target = config.steps or config.num_epochs * training.steps_per_epoch
        loop = TrainingLoop(state, batch_size=config.batch_size)
        return _Parts(state, loop, checkpoints, training, evaluation, target)

    def _compute_type(self, device: devices.Device, folder: CheckpointFolder) -> str:
        """Choose the compute type; `auto` keeps to the one the run began with, if it is fast."""
        chosen = devices.compute_type(self._config, device)
        newest = folder.scan().indices[:1]
        before = (folder.description(newest[0]) or {}).get("precision") if newest else None
        if self._config.precision == "auto" and before == "float32":
            return "float32"
        return chosen

    def _description(
        self, state: TrainingState, training: data.TrainingData, compute: str
    ) -> dict[str, Any]:
        config = self._config
        return {
            "schema": SCHEMA,
            "keras_flavour": "keras3",
            "model": signature(state.model),
            "precision": compute,
            "seed": config.seed,
            "batch_size": config.batch_size,
            "learning_rate": config.learning_rate,
            "data": "embedded" if config.embedded else f"{training.examples} examples",
            "versions": {"tensorflow": tf.__version__, "keras": keras.__version__},
        }

    def _warn(self, message: str) -> None:
        self._events.emit("warning", message, severity="WARNING")

    def _tell_restored(self, restored: Restored) -> None:
        path = events_path(self._config)
        seen = max(self._config.last_step, last_reported_step(path) if path else -1)
        lost = max(0, seen - restored.step)
        for problem in restored.problems:
            self._warn(f"set aside in the quarantine: {problem}")
        if restored.path:
            message = f"continuing from step {restored.step} ({lost} steps lost)"
        else:
            message = "starting at step 0, there is no checkpoint"
        self._events.emit(
            "restore",
            message,
            severity="WARNING" if restored.quarantined else "INFO",
            step=restored.step,
            path=restored.path,
            quarantined=list(restored.quarantined),
            steps_lost=lost,
        )

    def _train(self, parts: _Parts, step: int) -> int:
        """Train until the target or a request to stop. Returns the steps done, which are saved."""
        if step >= parts.target or self._stop.reason:
            return step
        self._events.emit("stage", "tracing the training step", stage="trace")
        parts.loop.start(parts.training.batches(step, parts.target))
        sizer = CallSizer(self._config.call_seconds)
        pending, waited, computed = 0, 0.0, 0.0
        saved_at = time.monotonic()
        first = True
        while step < parts.target and not self._stop.reason:
            count = min(sizer.steps, self._boundary(step, parts.target) - step)
            began = time.monotonic()
            waited_now, computed_now = parts.loop.run(count)
            sizer.observe(count, time.monotonic() - began)
            step, pending = step + count, pending + count
            waited, computed = waited + waited_now, computed + computed_now
            if self._event_due() or first or step == parts.target:
                measured = parts.loop.take_measures(pending, waited, computed)
                self._tell_step(parts, step, measured)
                pending, waited, computed, first = 0, 0.0, 0.0, False
            if self._save_due(step, parts.target, saved_at):
                self._save(parts, step)
                saved_at = time.monotonic()
        self._save(parts, step)
        return step

    def _boundary(self, step: int, target: int) -> int:
        every = self._config.checkpoint_every
        return min(target, (step // every + 1) * every) if every else target

    def _save_due(self, step: int, target: int, saved_at: float) -> bool:
        every, seconds = self._config.checkpoint_every, self._config.checkpoint_seconds
        if step == target or (every and step % every == 0):
            return True
        return bool(seconds) and time.monotonic() - saved_at >= seconds

    def _event_due(self) -> bool:
        return time.monotonic() - self._last_event >= STEP_EVENT_SECONDS

    def _tell_step(self, parts: _Parts, step: int, measured: Measured) -> None:
        if not math.isfinite(measured.loss):
            raise TrainerError(
                ExitCode.DEFECT,
                "UNCLASSIFIED",
                f"the loss is {measured.loss} at step {step}; this state is not saved",
                "resume with a smaller --learning_rate; the last checkpoint is from before",
            )
        self._last_event = time.monotonic()
        step_time = measured.wall_s / measured.steps
        self._events.emit(
            "step",
            f"step {step}/{parts.target} loss {measured.loss:.4f} accuracy {measured.accuracy:.4f}",
            step=step,
            target_step=parts.target,
            epoch=(step - 1) // parts.training.steps_per_epoch,
            loss=finite(measured.loss),
            accuracy=finite(measured.accuracy),
            examples_per_second=finite(self._config.batch_size / step_time, 1),
            step_time_s=finite(step_time),
            input_wait_fraction=finite(min(1.0, measured.waited_s / measured.wall_s), 4),
            device_fraction=finite(min(1.0, measured.computed_s / measured.wall_s), 4),
        )

    def _save(self, parts: _Parts, step: int) -> None:
        if step == 0:
            return
        saved = parts.checkpoints.save(step)
        if saved:
            self._events.emit(
                "checkpoint",
                f"saved step {step} in {saved.seconds:.2f} s",
                step=step,
                path=saved.path,
                seconds=finite(saved.seconds, 4),
                bytes=saved.bytes,
            )

    def _preempted(self, step: int) -> ExitCode:
        reason = self._stop.reason or "asked to stop"
        tell_preempted(self._events, step, reason, self._stop.age_s)
        return ExitCode.PREEMPTED

    def _finish(self, parts: _Parts, step: int) -> ExitCode:
        trained = parts.loop.evaluate(parts.evaluation.batches(self._evaluation_batch(parts)))
        examples = len(parts.evaluation.labels)
        self._events.emit(
            "eval",
            f"held-out loss {trained.loss:.4f} accuracy {trained.accuracy:.4f}",
            step=step,
            loss=finite(trained.loss),
            accuracy=finite(trained.accuracy),
            examples=examples,
        )
        if self._stop.reason:
            return self._preempted(step)
        path = export.export_model(parts.state.model, self._config.model_dir, step)
        digest = weights_sha256(parts.state.model)
        metrics = {
            "eval_loss": finite(trained.loss),
            "eval_accuracy": finite(trained.accuracy),
            "weights_sha256": digest,
        }
        self._events.emit(
            "finish",
            f"finished at step {step}: held-out accuracy {trained.accuracy:.4f}",
            step=step,
            metrics=metrics,
            export=path,
            weights_sha256=digest,
        )
        return ExitCode.FINISHED

    def _evaluation_batch(self, parts: _Parts) -> int:
        replicas = parts.state.device.count
        return max(replicas, min(256, self._config.batch_size) // replicas * replicas)
