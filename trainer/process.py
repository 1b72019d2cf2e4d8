"""A trainer's process, whatever the framework: command line, signals, events, exit code."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer.config import Config, bad_argument, events_path
from trainer.events import EventWriter, tell_preempted
from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.joblock import JobLock, is_remote
from trainer.stopping import StopRequest, stop_on_signals, watch_stdin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run_process(
    arguments: Sequence[str],
    read: Callable[[Sequence[str]], Config],
    train: Callable[[Config, EventWriter, StopRequest], ExitCode],
    *,
    make_events: Callable[..., EventWriter] = lambda _, **given: EventWriter(**given),
) -> int:
    """Run a trainer from its command line to its exit code, whatever the framework.

    Args:
        arguments: the command line without the program.
        read: turns it into settings.
        train: does the work.
        make_events: makes the writer of events, from the settings and the writer's arguments.
    """
    stop = StopRequest()
    stdout = 1
    try:
        config = read(arguments)
        stdout = claim_stdout()
        events = open_events(config, stdout, stop, make_events)
    except TrainerError as fault:
        run, attempt = identity(arguments)
        return fail(EventWriter(run=run, attempt=attempt, stdout=stdout), fault)
    stop.leave_at_once = lambda reason: _leave(events, reason)
    stop_on_signals(stop)
    if config.stop_on_stdin_eof:
        watch_stdin(stop)
    try:
        return int(train(config, events, stop))
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


def open_events(
    config: Config,
    stdout: int,
    stop: StopRequest | None = None,
    make: Callable[..., EventWriter] = lambda _, **given: EventWriter(**given),
) -> EventWriter:
    """Return the writer of events to stdout and to the run's events file.

    Raises:
        TrainerError: the model_dir or the file cannot be written.
    """
    file = events_path(config)
    try:
        if not is_remote(config.model_dir):
            Path(config.model_dir).mkdir(parents=True, exist_ok=True)
        return make(
            config,
            run=config.run,
            attempt=config.attempt,
            stdout=stdout,
            file=file,
            on_stdout_lost=lambda: stop and stop.ask("stdout was closed"),
        )
    except OSError as error:
        what = "a file for --events" if config.events else "a --model_dir"
        fault = bad_argument(
            f"cannot write to {file or config.model_dir}: {error.strerror}",
            f"choose {what} that this user can write to",
        )
        fault.error_class = "BUCKET_ACCESS"
        raise fault from error


def identity(arguments: Sequence[str]) -> tuple[str, int]:
    """Return run and attempt as far as they can be told from arguments that do not parse."""
    found = dict(itertools.pairwise(arguments))
    attempt = found.get("--attempt", "")
    return found.get("--run", "local"), int(attempt) if attempt.isdecimal() else 1


def take_lock(config: Config, events: EventWriter, stop: StopRequest) -> None:
    """Be the only trainer that writes to the run's folder, until the process ends.

    Raises:
        TrainerError: another one is.
    """
    JobLock(config.model_dir).acquire(
        wait_s=config.lock_wait_seconds,
        on_wait=lambda holder: events.emit(
            "warning", f"waiting for another trainer of this run ({holder})", severity="WARNING"
        ),
        cancelled=lambda: stop.reason is not None,
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
