"""One training job from start to end: set up, restore, train, evaluate, export."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from trainer import export
from trainer.config import Config, events_path
from trainer.config_checks import profiled_steps
from trainer.data.faults import input_failure
from trainer.early_stop import STATE_KEY, BestWeights, EarlyStop
from trainer.events import EventWriter, finite, last_reported_step, tell_preempted
from trainer.faults import ExitCode, TrainerError
from trainer.job_parts import Parts, make_parts, set_up_device
from trainer.loop import Call, CallSizer, Measured
from trainer.model import flops_per_example, weights_sha256
from trainer.profiling import Profiler
from trainer.step_reports import StepReports
from trainer.summaries import Summaries

if TYPE_CHECKING:
    from trainer.checkpoints import Restored
    from trainer.stopping import StopRequest


class Job:
    """A training job; made once TensorFlow may be imported."""

    def __init__(
        self, config: Config, events: EventWriter, stop: StopRequest, tpu_name: str | None
    ) -> None:
        self._config = config
        self._events = events
        self._stop = stop
        self._tpu_name = tpu_name
        self._early = EarlyStop(config.early_stop)
        self._profiler = Profiler(profiled_steps(config.profile), config.model_dir, events)
        self._summaries: Summaries | None = None
        self._performance: dict[str, Any] | None = None

    def execute(self) -> ExitCode:
        """Run the job to its end, or until it is asked to stop.

        Raises:
            TrainerError: it failed in a way that can be explained.
        """
        device = set_up_device(self._config, self._events, self._tpu_name)
        parts = make_parts(self._config, self._events, device)
        self._stop.leave_at_once = None
        restored = parts.checkpoints.restore()
        self._early.load(restored.extra.get(STATE_KEY))
        self._tell_restored(restored)
        if self._config.summaries:
            self._summaries = Summaries(self._config.model_dir)
            self._events.emit("summaries", self._summaries.how_to_look())
        step = self._train(parts, restored.step)
        if step < parts.target and not self._early.due:
            return self._preempted(step)
        return self._finish(parts, step)

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

    def _train(self, parts: Parts, step: int) -> int:
        """Train until the target or a request to stop. Returns the steps done, which are saved."""
        if step >= parts.target or self._stop.reason or self._early.due:
            return step
        flops = flops_per_example(parts.state.model)
        message = "tracing the training step"
        self._events.emit("stage", message, stage="trace", flops_per_example=flops)
        parts.loop.start(parts.training, step, parts.target)
        reports = StepReports(
            self._events,
            parts.loop,
            batch_size=self._config.batch_size,
            target=parts.target,
            steps_per_epoch=parts.training.steps_per_epoch,
        )
        sizer = CallSizer(self._config.call_seconds)
        saved_at = time.monotonic()
        while step < parts.target and not self._stop.reason and not self._early.due:
            self._profiler.at(step)
            count = min(sizer.steps, self._boundary(step, parts.target) - step)
            began = time.monotonic()
            call = self._call(parts, step, count)
            sizer.observe(count, time.monotonic() - began)
            step += count
            reports.add(call)
            evaluates = self._evaluation_due(step, parts.target)
            if reports.due or evaluates or step == parts.target:
                self._tell_step(parts, reports, step)
            if evaluates:
                self._evaluate_between(parts, step)
            if self._save_due(step, parts.target, saved_at):
                self._save(parts, step)
                saved_at = time.monotonic()
        self._profiler.stop(step)
        self._save(parts, step)
        self._performance = reports.performance(flops)
        return step

    def _call(self, parts: Parts, step: int, count: int) -> Call:
        """Run `count` steps after `step`.

        Raises:
            TrainerError: the input failed, or the numbers did; nothing of the call is saved.
        """
        try:
            call = parts.loop.run(count)
        except tf.errors.OpError as error:
            failure = input_failure(error, parts.training.files)
            if failure is None:
                raise
            failure.detail += f" (after step {step}; {self._last_good(parts)})"
            raise failure from error
        if not call.finite:
            raise self._not_a_number(parts, step + call.steps)
        return call

    def _not_a_number(self, parts: Parts, step: int) -> TrainerError:
        return TrainerError(
            ExitCode.DEFECT,
            "UNCLASSIFIED",
            f"loss or gradient is NaN or infinite at step {step}, which is not saved; "
            f"{self._last_good(parts)}",
            "resume with a smaller --learning_rate, --clip_norm 1 or --warmup_steps; the resumed "
            "run takes them over",
        )

    @staticmethod
    def _last_good(parts: Parts) -> str:
        saved = parts.checkpoints.last_saved
        return f"the last good checkpoint is ckpt-{saved}" if saved else "no checkpoint exists yet"

    def _boundary(self, step: int, target: int) -> int:
        """Return the next step at which something has to happen between device calls."""
        rhythms = (self._config.checkpoint_every, self._config.eval_every)
        nexts = [target, *((step // every + 1) * every for every in rhythms if every)]
        traced = self._profiler.boundary(step)
        return min(nexts if traced is None else [*nexts, traced])

    def _save_due(self, step: int, target: int, saved_at: float) -> bool:
        every, seconds = self._config.checkpoint_every, self._config.checkpoint_seconds
        if step == target or (every and step % every == 0):
            return True
        return bool(seconds) and time.monotonic() - saved_at >= seconds

    def _evaluation_due(self, step: int, target: int) -> bool:
        every = self._config.eval_every
        return bool(every) and step % every == 0 and step < target

    def _tell_step(self, parts: Parts, reports: StepReports, step: int) -> None:
        numbers = reports.tell(step, parts.state.schedule.at(step - 1))
        if self._summaries and numbers:
            self._after_summary(self._summaries.write(step, numbers))

    def _after_summary(self, problem: str | None) -> None:
        if problem:
            self._warn(problem)

    def _save(self, parts: Parts, step: int) -> None:
        if step == 0:
            return
        if not parts.state.weights_are_finite():
            raise self._not_a_number(parts, step)
        extra = {STATE_KEY: self._early.state()} if self._config.early_stop else {}
        saved = parts.checkpoints.save(step, extra)
        if self._summaries:
            self._after_summary(self._summaries.flush())
        if saved:
            self._events.emit(
                "checkpoint",
                f"saved step {step} in {saved.seconds:.2f} s",
                step=step,
                path=saved.path,
                seconds=finite(saved.seconds, 4),
                bytes=saved.bytes,
            )

    def _evaluate_between(self, parts: Parts, step: int) -> None:
        measured = self._evaluate(parts, step)
        if measured is None or not self._config.early_stop:
            return
        if self._early.observe(step, measured.loss):
            self._best(parts).save(step)
        elif self._early.due:
            self._events.emit(
                "early_stop",
                f"stopping at step {step}: no lower held-out loss since step "
                f"{self._early.best_step} ({self._early.best_loss:.4f})",
                step=step,
                best_step=self._early.best_step,
                best_loss=finite(self._early.best_loss),
            )

    def _best(self, parts: Parts) -> BestWeights:
        return BestWeights(parts.state.model, self._config.model_dir, self._warn)

    def _evaluate(self, parts: Parts, step: int) -> Measured | None:
        """Evaluate and tell the figures; None if a request to stop came before the end."""
        batches = parts.evaluation.batches(parts.evaluation_batch(self._config.batch_size))
        measured = parts.loop.evaluate(batches, lambda: self._stop.reason is not None)
        if measured is None:
            return None
        figures: dict[str, Any] = {
            "loss": finite(measured.loss),
            "accuracy": finite(measured.accuracy),
        }
        self._events.emit(
            "eval",
            f"held-out loss {measured.loss:.4f} accuracy {measured.accuracy:.4f}",
            step=step,
            **figures,
            examples=parts.evaluation.examples,
        )
        if self._summaries:
            named = {f"eval_{name}": value for name, value in figures.items()}
            self._after_summary(self._summaries.write(step, named))
        return measured

    def _preempted(self, step: int) -> ExitCode:
        reason = self._stop.reason or "asked to stop"
        tell_preempted(self._events, step, reason, self._stop.age_s)
        return ExitCode.PREEMPTED

    def _evaluate_at_end(self, parts: Parts, step: int) -> tuple[Measured | None, int | None]:
        """Evaluate the last weights, or the best ones if they are kept and better.

        Returns:
            The figures, None if a request to stop came; and the best step if its weights are used.
        """
        trained = self._evaluate(parts, step)
        best = self._early.best_step if self._config.early_stop else None
        if trained is None or best is None or self._early.best_loss >= trained.loss:
            return trained, None
        if not self._best(parts).restore(best):
            return trained, None
        return self._evaluate(parts, best), best

    def _finish(self, parts: Parts, step: int) -> ExitCode:
        trained, best = self._evaluate_at_end(parts, step)
        if trained is None or self._stop.reason:
            return self._preempted(step)
        if not math.isfinite(trained.loss):
            raise self._not_a_number(parts, step)
        path = export.export_model(parts.state.model, self._config.model_dir, step)
        digest = weights_sha256(parts.state.model)
        metrics = {
            "eval_loss": finite(trained.loss),
            "eval_accuracy": finite(trained.accuracy),
            "weights_sha256": digest,
        }
        if best is not None:
            metrics["best_step"] = best
        if self._summaries:
            self._after_summary(self._summaries.flush())
        self._events.emit(
            "finish",
            f"finished at step {step}: held-out accuracy {trained.accuracy:.4f}",
            step=step,
            metrics=metrics,
            export=path,
            weights_sha256=digest,
            performance=self._performance,
        )
        return ExitCode.FINISHED
