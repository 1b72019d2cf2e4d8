"""The trainer's process: settings, signals and settings of TensorFlow, then the job."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer.config import Config, bad_argument, events_path, parse
from trainer.devices import prepare_environment, tpu_name
from trainer.events import EventWriter, tell_preempted
from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.joblock import JobLock, is_remote
from trainer.lean_import import import_tensorflow
from trainer.stopping import StopRequest, stop_on_signals, watch_stdin
from trainer.versions import Installed, preflight

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trainer and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    stop = StopRequest()
    stdout = 1
    try:
        config = parse(given)
        stdout = claim_stdout()
        events = open_events(config, stdout, stop)
    except TrainerError as fault:
        run, attempt = identity(given)
        return fail(EventWriter(run=run, attempt=attempt, stdout=stdout), fault)
    stop.leave_at_once = lambda reason: _leave(events, reason)
    stop_on_signals(stop)
    if config.stop_on_stdin_eof:
        watch_stdin(stop)
    try:
        return int(_run(config, events, stop))
    except TrainerError as fault:
        return fail(events, fault)
    except Exception as error:  # noqa: BLE001 - the edge of the process: told, then ended
        traceback.print_exc()
        return fail(events, _unexpected(error))


def _leave(events: EventWriter, reason: str) -> NoReturn:
    """End before there is anything to save, even in the middle of an import or a dead connect."""
    tell_preempted(events, None, reason, 0.0)
    os._exit(ExitCode.PREEMPTED)


def claim_stdout() -> int:
    """Keep stdout for events alone: what libraries print goes to stderr instead."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def open_events(config: Config, stdout: int, stop: StopRequest | None = None) -> EventWriter:
    """Return the writer of events to stdout and to the run's events file.

    Raises:
        TrainerError: the model_dir or the file cannot be written.
    """
    file = events_path(config)
    try:
        if not is_remote(config.model_dir):
            Path(config.model_dir).mkdir(parents=True, exist_ok=True)
        return EventWriter(
            run=config.run,
            attempt=config.attempt,
            stdout=stdout,
            file=file,
            on_stdout_lost=lambda: stop and stop.ask("stdout was closed"),
        )
    except OSError as error:
        fault = bad_argument(
            f"cannot write to {file or config.model_dir}: {error.strerror}",
            "choose a --model_dir that this user can write to",
        )
        fault.error_class = "BUCKET_ACCESS"
        raise fault from error


def identity(arguments: Sequence[str]) -> tuple[str, int]:
    """Return run and attempt as far as they can be told from arguments that do not parse."""
    found = dict(itertools.pairwise(arguments))
    attempt = found.get("--attempt", "")
    return found.get("--run", "local"), int(attempt) if attempt.isdecimal() else 1


def _run(config: Config, events: EventWriter, stop: StopRequest) -> ExitCode:
    name = tpu_name(config, os.environ)
    installed, warnings = preflight(needs_tpu=name is not None)
    _tell_start(config, events, installed, name)
    for warning in warnings:
        events.emit("warning", warning, severity="WARNING")
    lock = JobLock(config.model_dir)
    lock.acquire(
        wait_s=config.lock_wait_seconds,
        on_wait=lambda holder: events.emit(
            "warning", f"waiting for another trainer of this run ({holder})", severity="WARNING"
        ),
        cancelled=lambda: stop.reason is not None,
    )
    prepare_environment(name, os.environ)
    events.emit("stage", f"importing TensorFlow {installed.tensorflow}", stage="import")
    import_tensorflow()
    from trainer.job import Job
    from trainer.tensorflow_engine import make_engine

    return Job(config, events, stop, lambda: make_engine(config, events, name)).execute()


def _tell_start(
    config: Config, events: EventWriter, installed: Installed, name: str | None
) -> None:
    from trainer.config import cores

    kind = "CPU" if name is None else "TPU"
    count = config.cpu_replicas if name is None else cores(config.accelerator_type)
    events.emit(
        "start",
        f"training {config.run} on {kind}, attempt {config.attempt}",
        versions={
            "python": sys.version.split()[0],
            installed.wheel: installed.tensorflow,
            "keras": installed.keras,
            "numpy": installed.numpy,
            "libtpu": installed.libtpu,
        },
        arguments=config.arguments(),
        device={"kind": kind, "count": count},
        pid=os.getpid(),
    )


def _unexpected(error: Exception) -> TrainerError:
    text = f"{type(error).__name__}: {error}"
    known = classify(text)
    if isinstance(error, MemoryError):
        return TrainerError(
            ExitCode.DEFECT, "HOST_OOM", "out of memory", "use a smaller --batch_size"
        )
    return TrainerError(
        ExitCode.DEFECT,
        known.error_class if known else "UNCLASSIFIED",
        one_line(text),
        known.hint if known else "the traceback is on stderr; resume continues from the checkpoint",
    )


def fail(events: EventWriter, fault: TrainerError) -> int:
    """Tell a failure as an event and on stderr. Returns its exit code."""
    events.error(fault)
    sys.stderr.write(f"trainer: {fault.error_class}: {one_line(fault.detail)} ({fault.hint})\n")
    return int(fault.exit_code)
