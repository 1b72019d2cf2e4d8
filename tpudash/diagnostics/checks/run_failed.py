"""Why a run failed: the class of its error, and what to do about that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import advice_on_class, describe_error, more_memory
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.classifier import classify_text
from tpudash.diagnostics.words import ago
from tpudash.domain.failure import ErrorClass
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import AttemptRecord, Run

ABOUT: Final = About(
    "run-failed",
    "Run has not failed",
    Scope.RUN,
    why="A failed run makes no progress, and its node goes on costing money.",
    rank=15,
    source=RUNS,
    group=Group.PROGRESS,
)
LAST_LINES: Final = 60
EXIT_CODES: Final = {
    64: "wrong arguments",
    66: "no input",
    69: "no device",
    70: "a defect",
    137: "killed",
}
"""Exit codes of the trainer, as its documentation gives them."""


def check(evidence: Evidence) -> Finding:
    """Name the cause of a failure; a trainer that was started again is a warning."""
    run, attempt = evidence.run, evidence.attempt
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state is RunState.FAILED:
        if attempt is None:
            # The node was never made, which is the question of another check.
            return ABOUT.not_applicable(evidence, run.reason or "it never began")
        return _judge_failure(run, attempt, evidence)
    if attempt is not None and attempt.restarts:
        _, detail, _ = describe_error(attempt.error or {})
        times = "once" if attempt.restarts == 1 else f"{attempt.restarts} times"
        return ABOUT.warned(
            evidence,
            f"its trainer was started again {times} on {attempt.node}"
            + (f": {detail}" if detail else ""),
            advice="It goes on by itself. If it happens again, read the log for the cause.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    return ABOUT.passed(evidence, f"it is {run.state}")


def _judge_failure(run: Run, attempt: AttemptRecord, evidence: Evidence) -> Finding:
    kind, detail, hint = _cause(attempt, evidence)
    words = detail or _exit(attempt) or run.reason or "no reason was recorded"
    advice = [hint or advice_on_class(kind)]
    if kind is ErrorClass.HBM_OOM and run.spec is not None:
        spec = run.spec
        advice.append(
            more_memory(spec.accelerator_type, spec.zone, spec.scheduling, evidence.prices)
        )
    return ABOUT.failed(
        evidence,
        f"{kind}: {words} ({attempt.node}, {ago(attempt.ended or attempt.updated, evidence.now)})",
        advice=" ".join(part for part in advice if part),
        action="pane-logs",
        command=f"tpudash logs {run.name}",
    )


def _cause(attempt: AttemptRecord, evidence: Evidence) -> tuple[ErrorClass, str, str]:
    """Return class, detail and hint: the agent's own, else what the log's last lines say."""
    error = attempt.error or evidence.newest_event("error", attempt.attempt)
    found = describe_error(error) if error else (ErrorClass.UNCLASSIFIED, "", "")
    if found[0] is not ErrorClass.UNCLASSIFIED:
        return found
    lines = [
        entry.text
        for entry in evidence.logs
        if entry.event is None and entry.attempt in {None, attempt.attempt}
    ]
    for failure in classify_text("\n".join([*lines[-LAST_LINES:], found[1]])):
        if failure.error_class is not ErrorClass.UNCLASSIFIED:
            return failure.error_class, failure.evidence, failure.advice
    return found


def _exit(attempt: AttemptRecord) -> str:
    code = attempt.exit_code
    if code is None:
        return ""
    meaning = EXIT_CODES.get(code)
    return f"the trainer ended with code {code}" + (f", {meaning}" if meaning else "")
