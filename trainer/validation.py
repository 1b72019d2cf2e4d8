"""`python -m trainer validate`: is everything there that a run needs? Each check is one event.

It takes the flags of a run, writes only into a folder of its own below the model_dir, and removes
it again. A `check` event holds `check`, `verdict` (ok, warning, failed or skipped), `value` with
its `unit`, and a message; the last event, `validate`, sums them up.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.config import Config, parse
from trainer.devices import prepare_environment, tpu_name
from trainer.events import EventWriter, finite
from trainer.faults import ExitCode, TrainerError, classify, one_line
from trainer.lean_import import import_tensorflow
from trainer.process import claim_stdout, fail, identity, open_events
from trainer.versions import preflight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"
CHECKS = (
    "versions",
    "devices",
    "input",
    "step",
    "checkpoint_write",
    "checkpoint_read",
    "export",
    "prediction",
)
"""In this order; each needs those before it."""
_SEVERITIES = {OK: "INFO", SKIPPED: "INFO", WARNING: "WARNING", FAILED: "ERROR"}


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes:
        value: the figure.
        unit: of the figure.
        message: one line for people.
        verdict: ok or warning; a failure is raised as a `TrainerError`.
        details: further figures.
    """

    value: float | None
    unit: str
    message: str
    verdict: str = OK
    details: dict[str, Any] | None = None


class Report:
    """Runs checks, tells each as an event, and remembers the worst."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._began = time.monotonic()
        self.verdicts: dict[str, str] = {}
        self.exit_code = ExitCode.FINISHED

    def run(self, name: str, check: Callable[[], Outcome]) -> None:
        """Run a check, unless an earlier one that it needs has failed."""
        if FAILED in self.verdicts.values():
            self._tell(name, SKIPPED, None, "", "skipped, because an earlier check failed", 0.0)
            return
        began = time.monotonic()
        try:
            outcome = check()
        except TrainerError as fault:
            self._failed(name, fault, time.monotonic() - began)
            return
        except Exception as error:  # noqa: BLE001 - the edge of a check: told, then the next
            traceback.print_exc()
            known = classify(str(error))
            unexpected = TrainerError(
                ExitCode.DEFECT,
                known.error_class if known else "UNCLASSIFIED",
                one_line(f"{type(error).__name__}: {error}"),
                known.hint if known else "the traceback is on stderr",
            )
            self._failed(name, unexpected, time.monotonic() - began)
            return
        self._tell(
            name,
            outcome.verdict,
            outcome.value,
            outcome.unit,
            outcome.message,
            time.monotonic() - began,
            **(outcome.details or {}),
        )

    def _failed(self, name: str, fault: TrainerError, seconds: float) -> None:
        self.exit_code = fault.exit_code
        named = {"class": fault.error_class, "detail": one_line(fault.detail), "hint": fault.hint}
        self._tell(name, FAILED, None, "", f"{fault.detail} ({fault.hint})", seconds, **named)
        sys.stderr.write(
            f"trainer validate: {name}: {fault.error_class}: {one_line(fault.detail)} "
            f"({fault.hint})\n"
        )

    def _tell(
        self,
        name: str,
        verdict: str,
        value: float | None,
        unit: str,
        message: str,
        seconds: float,
        **details: Any,
    ) -> None:
        self.verdicts[name] = verdict
        self._events.emit(
            "check",
            one_line(f"{name}: {message}"),
            severity=_SEVERITIES[verdict],
            check=name,
            verdict=verdict,
            value=finite(value),
            unit=unit,
            seconds=finite(seconds, 3),
            **details,
        )

    def tidy(self, clean_up: Callable[[], None]) -> None:
        """Remove what the checks wrote; what cannot be removed is told, and fails nothing."""
        try:
            clean_up()
        except TrainerError as fault:
            text = one_line(f"{fault.detail} ({fault.hint})")
            self._events.emit("warning", text, severity="WARNING")

    def close(self) -> None:
        """Write the event that sums up."""
        verdicts = self.verdicts.values()
        worst = next((each for each in (FAILED, WARNING) if each in verdicts), OK)
        good = sum(each in (OK, WARNING) for each in verdicts)
        seconds = time.monotonic() - self._began
        self._events.emit(
            "validate",
            f"{good} of {len(CHECKS)} checks passed in {seconds:.1f} s",
            severity=_SEVERITIES[worst],
            verdict=worst,
            checks=self.verdicts,
            seconds=finite(seconds, 2),
        )


def main(arguments: Sequence[str]) -> int:
    """Run all checks and return the exit code of the first that failed, else 0."""
    stdout = 1
    try:
        config = parse(arguments, "python -m trainer validate")
        stdout = claim_stdout()
        events = open_events(config, stdout)
    except TrainerError as fault:
        run, attempt = identity(arguments)
        return fail(EventWriter(run=run, attempt=attempt, stdout=stdout), fault)
    report = Report(events)
    name = tpu_name(config, os.environ)
    report.run("versions", lambda: _versions(needs_tpu=name is not None))
    if report.verdicts["versions"] == FAILED:
        for each in CHECKS[1:]:
            report.run(each, _nothing)
    else:
        _run_heavy(config, report, name)
    report.close()
    return int(report.exit_code)


def _nothing() -> Outcome:
    raise AssertionError("a skipped check does not run")


def _versions(*, needs_tpu: bool) -> Outcome:
    installed, warnings = preflight(needs_tpu=needs_tpu)
    found = f"{installed.wheel} {installed.tensorflow}, keras {installed.keras}"
    versions = {
        installed.wheel: installed.tensorflow,
        "keras": installed.keras,
        "numpy": installed.numpy,
        "libtpu": installed.libtpu,
        "python": sys.version.split()[0],
    }
    message = "; ".join([found, *warnings])
    verdict = WARNING if warnings else OK
    return Outcome(len(versions), "packages", message, verdict, {"versions": versions})


def _run_heavy(config: Config, report: Report, name: str | None) -> None:
    prepare_environment(name, os.environ)
    import_tensorflow()
    from trainer.validation_checks import Rehearsal

    rehearsal = Rehearsal(config, name)
    try:
        for check in CHECKS[1:]:
            report.run(check, getattr(rehearsal, check))
    finally:
        report.tidy(rehearsal.clean_up)
