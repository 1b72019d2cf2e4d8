"""One training job from start to end: restore, train, evaluate, export; whatever the framework."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from trainer.config import Config, events_path
from trainer.config_checks import profiled_steps
from trainer.early_stop import STATE_KEY, EarlyStop
from trainer.engine import Wishes
from trainer.events import EventWriter, finite, last_reported_step, tell_preempted
from trainer.faults import ExitCode, TrainerError
from trainer.measures import Call, CallSizer, Measured
from trainer.profiling import Profiler
from trainer.step_reports import StepReports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainer.engine import CurveWriter, Engine
    from trainer.resuming import Restored, Saved
    from trainer.stopping import StopRequest


class Job:
    """A training job.

    Args:
        config: the settings.
        events: where it tells what it does.
        stop: a request to stop.
        make_engine: sets the framework up; may take long, and is given up by a request to stop.
    """

    def __init__(
        self,
        config: Config,
        events: EventWriter,
        stop: StopRequest,
        make_engine: Callable[[], Engine],
    ) -> None:
        self._config = config
        self._events = events
        self._stop = stop
        self._make_engine = make_engine
        self._stopping = False
        self._saved_at = 0.0
        self._early = EarlyStop(config.early_stop)
        self._curves: CurveWriter | None = None
        self._performance: dict[str, Any] | None = None

    def execute(self) -> ExitCode:
        """Run the job to its end, or until it is asked to stop.

        Raises:
            TrainerError: it failed in a way that can be explained.
        """
        engine = self._make_engine()
        self._stop.leave_at_once = None
        restored = engine.restore()
        self._early.load(restored.extra.get(STATE_KEY))
        self._tell_restored(restored)
        if restored.step > engine.target:
            self._warn(
                f"step {restored.step} is done, which is more than the {engine.target} steps asked "
                "for: nothing is trained"
            )
        if self._config.summaries:
            self._curves = engine.curves()
            self._events.emit("summaries", self._curves.how_to_look())
        self._agree(engine)
        step = self._train(engine, restored.step)
        is_done = step >= engine.target or self._early.due
        code = self._finish(engine, step) if is_done else self._preempted(step)
        engine.peers.part()
        return code

    def _agree(self, engine: Engine, *, seconds: float = 0.0, save: bool = False) -> Wishes:
        """Settle with the other processes what all do next."""
        mine = Wishes(self._stop.reason is not None, seconds, save)
        agreed = engine.peers.agree(mine)
        self._stopping = self._stopping or agreed.stop
        return agreed

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

    def _train(self, engine: Engine, step: int) -> int:
        """Train until the target or a request to stop. Returns the steps done, which are saved."""
        if step >= engine.target or self._stopping or self._early.due:
            return step
        flops = engine.flops_per_example()
        message = "tracing the training step"
        self._events.emit(
            "stage", message, stage="trace", flops_per_example=flops, input=engine.input_facts()
        )
        engine.start(step)
        profiler = Profiler(
            profiled_steps(self._config.profile),
            self._config.model_dir,
            self._events,
            engine.tracer,
        )
        reports = StepReports(self._events, engine, batch_size=self._config.batch_size)
        step = self._run_calls(engine, step, profiler, reports)
        profiler.stop(step)
        self._save(engine, step, wait=True)
        self._performance = reports.performance(flops)
        return step

    def _run_calls(
        self, engine: Engine, step: int, profiler: Profiler, reports: StepReports
    ) -> int:
        """Make device calls until the target or a request to stop. Returns the steps done."""
        sizer = CallSizer(self._config.call_seconds)
        self._saved_at = time.monotonic()
        count, seconds = 0, 0.0
        while step < engine.target and not self._early.due:
            is_time = self._is_time_to_save(engine, step)
            agreed = self._agree(engine, seconds=seconds, save=is_time)
            if self._stopping:
                break
            if agreed.save:
                self._save(engine, step)
            if count:
                sizer.observe(count, agreed.seconds)
            profiler.at(step)
            count = min(sizer.steps, self._boundary(profiler, step, engine.target) - step)
            began = time.monotonic()
            call = self._call(engine, step, count)
            seconds = time.monotonic() - began
            step += count
            self._after_call(engine, step, call, reports)
        return step

    def _after_call(self, engine: Engine, step: int, call: Call, reports: StepReports) -> None:
        reports.add(call)
        self._tell_saved(engine.saved())
        evaluates = self._evaluation_due(step, engine.target)
        if reports.due or evaluates or step == engine.target:
            self._tell_step(engine, reports, step)
        if evaluates:
            self._evaluate_between(engine, step)
        every = self._config.checkpoint_every
        if step == engine.target or (every and step % every == 0):
            self._save(engine, step)

    def _call(self, engine: Engine, step: int, count: int) -> Call:
        """Run `count` steps after `step`.

        Raises:
            TrainerError: the input failed, or the numbers did; nothing of the call is saved.
        """
        try:
            call = engine.run(count)
        except TrainerError as failure:
            failure.detail += f" (after step {step}; {self._last_good(engine)})"
            raise
        if not call.finite:
            raise self._not_a_number(engine, step + call.steps)
        return call

    def _not_a_number(self, engine: Engine, step: int) -> TrainerError:
        return TrainerError(
            ExitCode.DEFECT,
            "UNCLASSIFIED",
            f"loss or gradient is NaN or infinite at step {step}, which is not saved; "
            f"{self._last_good(engine)}",
            "resume with a smaller --learning_rate, --clip_norm 1 or --warmup_steps; the resumed "
            "run takes them over",
        )

    @staticmethod
    def _last_good(engine: Engine) -> str:
        saved = engine.last_saved
        return f"the last good checkpoint is ckpt-{saved}" if saved else "no checkpoint exists yet"

    def _boundary(self, profiler: Profiler, step: int, target: int) -> int:
        """Return the next step at which something has to happen between device calls."""
        rhythms = (self._config.checkpoint_every, self._config.eval_every)
        nexts = [target, *((step // every + 1) * every for every in rhythms if every)]
        traced = profiler.boundary(step)
        return min(nexts if traced is None else [*nexts, traced])

    def _is_time_to_save(self, engine: Engine, step: int) -> bool:
        seconds = self._config.checkpoint_seconds
        if not seconds or step in (0, engine.last_saved):
            return False
        return time.monotonic() - self._saved_at >= seconds

    def _evaluation_due(self, step: int, target: int) -> bool:
        every = self._config.eval_every
        return bool(every) and step % every == 0 and step < target

    def _tell_step(self, engine: Engine, reports: StepReports, step: int) -> None:
        numbers = reports.tell(step, engine.learning_rate(step - 1))
        if self._curves and numbers:
            self._after_summary(self._curves.write(step, numbers))

    def _after_summary(self, problem: str | None) -> None:
        if problem:
            self._warn(problem)

    def _save(self, engine: Engine, step: int, *, wait: bool = False) -> None:
        if step == 0:
            return
        self._saved_at = time.monotonic()
        if not engine.weights_are_finite():
            raise self._not_a_number(engine, step)
        extra = {STATE_KEY: self._early.state()} if self._config.early_stop else {}
        self._tell_saved(engine.save(step, extra, wait=wait))
        if self._curves:
            self._after_summary(self._curves.flush())

    def _tell_saved(self, checkpoints: Sequence[Saved]) -> None:
        for saved in checkpoints:
            self._events.emit(
                "checkpoint",
                f"saved step {saved.step} in {saved.seconds:.2f} s",
                step=saved.step,
                path=saved.path,
                seconds=finite(saved.seconds, 4),
                held_s=finite(saved.held_s, 4),
                bytes=saved.bytes,
            )

    def _evaluate_between(self, engine: Engine, step: int) -> None:
        measured = self._evaluate(engine, step)
        if measured is None or not self._config.early_stop:
            return
        if self._early.observe(step, measured.loss):
            engine.save_best(step)
        elif self._early.due:
            self._events.emit(
                "early_stop",
                f"stopping at step {step}: no lower held-out loss since step "
                f"{self._early.best_step} ({self._early.best_loss:.4f})",
                step=step,
                best_step=self._early.best_step,
                best_loss=finite(self._early.best_loss),
            )

    def _evaluate(self, engine: Engine, step: int) -> Measured | None:
        """Evaluate and tell the figures; None if a request to stop came before the end."""
        measured = engine.evaluate(lambda: self._stop.reason is not None)
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
            examples=engine.evaluation_examples,
        )
        if self._curves:
            named = {f"eval_{name}": value for name, value in figures.items()}
            self._after_summary(self._curves.write(step, named))
        return measured

    def _preempted(self, step: int) -> ExitCode:
        reason = self._stop.reason or "another worker was asked to stop"
        tell_preempted(self._events, step, reason, self._stop.age_s)
        return ExitCode.PREEMPTED

    def _evaluate_at_end(self, engine: Engine, step: int) -> tuple[Measured | None, int | None]:
        """Evaluate the last weights, or the best ones if they are kept and better.

        Returns:
            The figures, None if a request to stop came; and the best step if its weights are used.
        """
        trained = self._evaluate(engine, step)
        best = self._early.best_step if self._config.early_stop else None
        if trained is None or best is None or self._early.best_loss >= trained.loss:
            return trained, None
        if not engine.restore_best(best):
            return trained, None
        return self._evaluate(engine, best), best

    def _finish(self, engine: Engine, step: int) -> ExitCode:
        trained, best = self._evaluate_at_end(engine, step)
        if trained is None or self._agree(engine).stop:
            return self._preempted(step)
        if not math.isfinite(trained.loss):
            raise self._not_a_number(engine, step)
        path = engine.export(step)
        digest = engine.weights_sha256()
        metrics = {
            "eval_loss": finite(trained.loss),
            "eval_accuracy": finite(trained.accuracy),
            "weights_sha256": digest,
        }
        if best is not None:
            metrics["best_step"] = best
        if self._curves:
            self._after_summary(self._curves.flush())
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
