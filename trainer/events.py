"""Events of the trainer: one JSON object a line, on stdout and in a file."""

from __future__ import annotations

import json
import math
import os
import threading
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from trainer.faults import TrainerError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def timestamp() -> str:
    """Return the current time as RFC 3339 in UTC with milliseconds."""
    now = datetime.now(timezone.utc)
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"


def finite(value: float | None, digits: int = 6) -> float | None:
    """Return a rounded number, or None for what JSON cannot say (NaN, infinity)."""
    if value is None or not math.isfinite(value):
        return None
    return round(value, digits)


class EventWriter:
    """Writes events; each is one `write` call, so that lines of two writers never mix.

    Losing a destination never stops the training: a full disk silences the file, a closed stdout
    means that the supervisor died, which is told to `on_stdout_lost`.
    """

    def __init__(
        self,
        *,
        run: str,
        attempt: int,
        stdout: int,
        file: Path | None = None,
        on_stdout_lost: Callable[[], object] = lambda: None,
    ) -> None:
        self._run = run
        self._attempt = attempt
        self._stdout: int | None = stdout
        self._on_stdout_lost = on_stdout_lost
        self._lock = threading.Lock()
        self._seq = 0
        self._file: int | None = None
        if file is not None:
            self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def emit(self, event: str, message: str, *, severity: str = "INFO", **payload: Any) -> None:
        """Write one event.

        Args:
            event: the kind, such as `step` or `checkpoint`.
            message: one line for people.
            severity: DEBUG, INFO, WARNING or ERROR, as Cloud Logging names them.
            **payload: the fields of this kind; must be JSON without NaN.
        """
        with self._lock:
            self._seq += 1
            record = {
                "ts": timestamp(),
                "seq": self._seq,
                "run": self._run,
                "attempt": self._attempt,
                "event": event,
                "severity": severity,
                "message": message,
                **payload,
            }
            line = (json.dumps(record, allow_nan=False) + "\n").encode()
            self._write_file(line)
            lost = not self._write_stdout(line)
        if lost:
            self._on_stdout_lost()

    def error(self, fault: TrainerError) -> None:
        """Write the `error` event of a failure."""
        self.emit(
            "error",
            one_line(f"{fault.error_class}: {fault.detail}"),
            severity="ERROR",
            **{"class": fault.error_class, "detail": one_line(fault.detail), "hint": fault.hint},
        )

    def _write_stdout(self, line: bytes) -> bool:
        if self._stdout is None:
            return True
        try:
            _write_all(self._stdout, line)
        except OSError:
            self._stdout = None
            return False
        return True

    def _write_file(self, line: bytes) -> None:
        if self._file is None:
            return
        try:
            _write_all(self._file, line)
        except OSError as error:
            os.close(self._file)
            self._file = None
            os.write(2, f"trainer: the events file is no longer written: {error}\n".encode())


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def last_reported_step(file: Path) -> int:
    """Return the newest step in an events file, or -1; reads only its last 64 KiB."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - 65536))
            lines = stream.read().splitlines()
    except OSError:
        return -1
    newest = -1
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("event") in ("step", "checkpoint"):
            step = record.get("step")
            newest = step if isinstance(step, int) else newest
    return newest


def tell_preempted(events: EventWriter, step: int | None, reason: str, seconds: float) -> None:
    """Write the `preempt` event; `seconds` is the time since the request to stop."""
    where = f"at step {step}" if step is not None else "before the first step"
    events.emit(
        "preempt",
        f"stopping {where}: {reason}",
        severity="WARNING",
        step=step,
        reason=reason,
        seconds=finite(seconds, 3),
    )
