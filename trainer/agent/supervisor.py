"""Runs the recipe's command until it finishes, fails for good, or the node has to go."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING

from trainer.agent import child as children
from trainer.agent import self_check
from trainer.agent.child import Child
from trainer.agent.console import console
from trainer.agent.cost_cap import CostCap, elapsed_since
from trainer.agent.progress import Progress, parse_event, severity_of
from trainer.agent.recipe_command import full_command, full_environment, is_server, is_trainer
from trainer.agent.settings import AgentExit
from trainer.faults import ExitCode, classify, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.record import Recorder
    from trainer.agent.settings import Settings
    from trainer.agent.shipper import Shipper
    from trainer.agent.spec import Spec

_FATAL = (ExitCode.BAD_ARGUMENTS, ExitCode.NO_INPUT, ExitCode.NO_DEVICE, ExitCode.DEFECT)
_NOTICE_MARGIN_S = 4.0
_STOP_PATIENCE_S = 10.0
_OLD_TRAINER_PATIENCE_S = 45.0
_SETTLE_S = 5.0
"""A trainer that was told to stop is often just ahead of the node's own notice."""


class Supervisor:
    """The main loop of a worker that runs the command."""

    def __init__(
        self,
        spec: Spec,
        node: NodeIdentity,
        settings: Settings,
        *,
        recorder: Recorder,
        shipper: Shipper,
        tell: Callable[..., None],
        last_step: int,
    ) -> None:
        self._spec = spec
        self._node = node
        self._settings = settings
        self._recorder = recorder
        self._shipper = shipper
        self._tell = tell
        self.progress = Progress(recorder, last_step)
        self._wake = threading.Event()
        self._notice: str | None = None
        self._notice_at = 0.0
        self._child: Child | None = None
        self._stalled = False
        self._tested = False
        self.cap = CostCap()
        """How much the run may still cost; set before `run`."""
        self.ended_elsewhere: Callable[[], AgentExit | None] = lambda: None
        """Asked before the command is run again: how the attempt ended on another worker."""
        self.capped = False
        """Whether the attempt ended since the run may cost no more."""

    @property
    def trainer_pid(self) -> int | None:
        """Process id of the running trainer."""
        child = self._child
        return child.pid if child is not None and child.exit_code is None else None

    def give_notice(self, reason: str) -> None:
        """Tell that the node has to go; may be called from any thread."""
        if self._notice is None:
            self._notice_at = time.monotonic()
            self._notice = reason
        self._wake.set()

    @property
    def noticed(self) -> str | None:
        """Why the node has to go, or None."""
        return self._notice

    def run(self) -> AgentExit:
        """Run the command, again if it was killed, and return how the attempt ended."""
        waited = children.outwait(
            self._pid_file, _OLD_TRAINER_PATIENCE_S, lambda: self._notice is not None
        )
        if waited:
            self._tell(waited)
        end = self._validate()
        if end is not None:
            return end
        fruitless = 0
        while True:
            if self._notice is not None:
                return self._stopped(None)
            if self._is_over_cap():
                return self._ended_by_cap(None)
            before = self.progress.best_step
            code = self._run_once()
            end = self._judge(code)
            end = end if end is not None else self.ended_elsewhere()
            if end is not None:
                return end
            moved = self.progress.best_step > before or self.progress.served
            fruitless = 0 if moved else fruitless + 1
            if fruitless > self._settings.restarts:
                return self._gave_up(code, fruitless)
            self._prepare_restart(code, fruitless)

    @property
    def _pid_file(self) -> Path:
        return self._settings.node_dir / "trainer.json"

    def _run_once(self) -> int:
        self.progress.begin_process()
        self._stalled = False
        try:
            self._child = child = Child(
                self._command(),
                self._environment(),
                on_line=self._on_line,
                on_exit=self._wake.set,
                on_trouble=console,
            )
        except OSError as error:
            self.progress.error = {
                "class": "BAD_REQUEST",
                "detail": f"the recipe's command cannot be run: {error}",
                "hint": "check recipe.command in the run's spec",
            }
            self._recorder.update(urgent=True, error=self.progress.error)
            return int(ExitCode.BAD_ARGUMENTS)
        children.remember(self._pid_file, child.pid)
        self._tell(f"started the trainer, pid {child.pid}")
        return self._follow(child)

    def _follow(self, child: Child) -> int:
        began = time.monotonic()
        asked_at: float | None = None
        killed = False
        while (code := child.exit_code) is None:
            now = time.monotonic()
            if self._notice is not None and asked_at is None:
                asked_at = now
                self._tell(f"{self._notice}: asking the trainer to save and stop")
                self._ask_to_stop(child, self._notice)
            if asked_at is None and self._is_over_cap():
                asked_at = now
                self.capped = True
                self._tell("the run has cost what it may: asking the trainer to save and stop")
                self._ask_to_stop(child, "the run has cost what it may")
            if asked_at is None and self._has_stalled(child, began, now):
                asked_at = now
                self._stalled = True
                self._tell_stalled(now - max(began, child.heard_at))
                self._ask_to_stop(child, "stalled")
            if asked_at is not None and not killed and now - asked_at > self._patience():
                killed = True
                self._tell("the trainer did not stop in time and is killed")
                child.signal(signal.SIGKILL)
            self._wake.wait(0.2 if self._notice is None else 0.05)
            if self._notice is None:
                self._wake.clear()
        # Helpers of the command must not outlive it.
        child.signal(signal.SIGKILL)
        return code

    def _ask_to_stop(self, child: Child, reason: str) -> None:
        """Ask by stdin who listens there, others by SIGTERM.

        A service manager may signal all processes of the node, and the bundled trainer takes a
        second SIGTERM for an order to end without saving.
        """
        if is_trainer(self._spec.command) or is_server(self._spec.command):
            child.say(f"stop {reason}")
        else:
            child.signal(signal.SIGTERM)

    def _patience(self) -> float:
        if self._stalled and self._notice is None:
            return _STOP_PATIENCE_S
        return max(2.0, self._settings.notice_s - _NOTICE_MARGIN_S)

    def _has_stalled(self, child: Child, began: float, now: float) -> bool:
        training = self.progress.training
        limit = self._settings.stall_s if training else self._settings.start_deadline_s
        return now - max(began, child.heard_at) > limit

    def _tell_stalled(self, silent_s: float) -> None:
        what = "while training" if self.progress.training else "before the first step"
        error = {
            "class": "STALLED",
            "detail": f"the trainer said nothing for {silent_s:.0f} s {what}",
            "hint": "look at its stderr; a TPU that cannot be reached shows no error at all",
        }
        self.progress.error = error
        self._recorder.update(urgent=True, error=error)
        payload = {"event": "error", "message": f"STALLED: {error['detail']}", **error}
        self._shipper.submit("agent", severity="ERROR", payload=payload)
        self._tell(error["detail"])

    def _on_line(self, stream: str, line: str) -> None:
        event = parse_event(line) if stream == "stdout" else None
        if event is None:
            self._shipper.submit(stream, text=line)
            if stream == "stderr":
                console(line, "trainer")
            return
        timestamp = event.get("ts")
        self._shipper.submit(
            "event",
            severity=severity_of(event),
            payload=event,
            ts=timestamp if isinstance(timestamp, str) else None,
        )
        self.progress.take(event)

    def _judge(self, code: int) -> AgentExit | None:
        """Decide by the exit code; None means to start the trainer again."""
        self._recorder.update(exit_code=code, log_entries_dropped=self._shipper.dropped)
        if code == ExitCode.FINISHED and not self._stalled:
            self.capped = False
            return AgentExit.FINISHED
        if self.capped and self._notice is None:
            return self._ended_by_cap(code)
        if code == ExitCode.PREEMPTED and self._notice is None and not self._stalled:
            self._wait_for_notice(_SETTLE_S)
        if self._notice is not None:
            return self._stopped(code)
        if code in _FATAL and not self._stalled:
            return self._failed(code)
        known = self._classify_stderr()
        if known and known["class"] in ("VERSION", "DEVICE_BUSY"):
            self.progress.error = self.progress.error or known
            return self._failed(code)
        return None

    def _wait_for_notice(self, seconds: float) -> None:
        self._wake.clear()
        if self._notice is None:
            self._wake.wait(seconds)

    def _classify_stderr(self) -> dict[str, str] | None:
        child = self._child
        lines = list(child.stderr_tail) if child is not None else []
        known = classify("\n".join(lines))
        if known is None:
            return None
        last = next((line for line in reversed(lines) if classify(line)), lines[-1])
        return {"class": known.error_class, "detail": one_line(last), "hint": known.hint}

    def _is_over_cap(self) -> bool:
        return self.cap.left_s(elapsed_since(self._recorder.record.started)) <= 0

    def _ended_by_cap(self, code: int | None) -> AgentExit:
        self.capped = True
        record = self._recorder.record
        error = self.cap.error(record.step, record.checkpoint_step)
        payload = {"event": "error", "message": f"BILLING: {error['detail']}", **error}
        self._shipper.submit("agent", severity="ERROR", payload=payload)
        self._recorder.update(urgent=True, state="FAILED", stage=None, exit_code=code, error=error)
        self._tell(error["detail"], "WARNING")
        return AgentExit.FAILED

    def _stopped(self, code: int | None) -> AgentExit:
        self._recorder.update(urgent=True, state="PREEMPTED", stage=None, exit_code=code)
        return AgentExit.STOPPED

    def _failed(self, code: int) -> AgentExit:
        error = self.progress.error or self._classify_stderr() or _unexplained(code, self._child)
        self._recorder.update(urgent=True, state="FAILED", stage=None, error=error)
        self._tell(f"the run failed: {error.get('class')}: {error.get('detail')}")
        return AgentExit.FAILED

    def _gave_up(self, code: int, fruitless: int) -> AgentExit:
        self._tell(f"gave up: the trainer ended {fruitless} times without progress")
        return self._failed(code)

    def _validate(self) -> AgentExit | None:
        """Have the trainer test itself before it trains, if the run asks for that.

        Returns:
            The attempt's end if a test failed; None to train.
        """
        if not self._spec.validate_first or self._notice is not None or self._is_over_cap():
            return None
        self._recorder.update(urgent=True, stage="validate")
        self._tell("the trainer tests itself first, since the run asks for it")
        found = self._test()
        if found is None:
            self._tell("this recipe has no tests of its own", "WARNING")
        if found is None or not found.code or self._notice is not None:
            return None
        self.progress.error = found.failure
        self._recorder.update(exit_code=found.code)
        return self._failed(found.code)

    def check_itself(self) -> None:
        """Have the trainer test itself after a failure that does not say what is wrong."""
        error_class = (self._recorder.record.error or {}).get("class")
        if error_class in self_check.WORTH_IT and not self._tested:
            self._tell("the trainer tests itself, to find out what is wrong")
            self._test()

    def _test(self) -> self_check.Findings | None:
        """Run the trainer's own tests; None if it has none, or they are turned off."""
        command = self_check.command_of(self._command())
        limit_s = self._settings.self_check_s
        if command is None or limit_s <= 0:
            return None
        self._tested = True
        found = self_check.report(
            command,
            self._environment(),
            limit_s=limit_s,
            shipper=self._shipper,
            tell=self._tell,
            cancelled=lambda: self._notice is not None,
        )
        self._recorder.update(urgent=True, checks=found.checks)
        return found

    def _prepare_restart(self, code: int, fruitless: int) -> None:
        record = self._recorder.record
        pause = min(self._settings.backoff_s * 2 ** max(0, fruitless - 1), 60.0)
        text = f"the trainer ended with {_exit_text(code)}; starting it again in {pause:.0f} s"
        self._recorder.update(urgent=True, state="STARTING", restarts=record.restarts + 1)
        self._shipper.submit("agent", severity="WARNING", text=text)
        self._tell(text)
        self._wait_for_notice(pause)

    def _command(self) -> list[str]:
        return full_command(
            self._spec,
            self._node,
            last_step=self.progress.last_step,
            endpoint=self._settings.endpoint,
        )

    def _environment(self) -> dict[str, str]:
        return full_environment(self._spec, self._node, last_step=self.progress.last_step)


def _unexplained(code: int, child: Child | None) -> dict[str, str]:
    """Return the error of a trainer that ended without saying why."""
    tail = child.stderr_tail[-1] if child and child.stderr_tail else ""
    killed = code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return {
        "class": "HOST_OOM" if killed else "UNCLASSIFIED",
        "detail": one_line(f"the trainer ended with {_exit_text(code)}. {tail}"),
        "hint": "the kernel kills what uses too much memory: see dmesg"
        if killed
        else "see the log of stream stderr; resume continues from the last checkpoint",
    }


def _exit_text(code: int) -> str:
    if code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"
