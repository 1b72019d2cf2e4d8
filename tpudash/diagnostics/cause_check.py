"""The verdict of every check that asks whether a run's log or record names a certain trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.log_causes import newest_cause
from tpudash.diagnostics.words import ago
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from collections.abc import Collection

    from tpudash.diagnostics.check import About
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.diagnostics.log_causes import Cause
    from tpudash.domain.failure import ErrorClass
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

BEFORE_ANY: Final = frozenset({RunState.FAILED, RunState.WAITING, RunState.DELETED})
"""States in which a run may be that no node was ever made for."""
NOTHING_HEARD: Final = "neither a log line nor a record of it is known"


def without_attempt(about: About, evidence: Evidence) -> Finding | None:
    """Return that nothing ran yet that could have said anything, or None where something did."""
    run = evidence.run
    if run is None:
        return about.not_applicable(evidence, "no run is asked about")
    if run.state in BEFORE_ANY and not run.attempts and not evidence.logs:
        return about.not_applicable(evidence, "no attempt of it has begun")
    return None


def judge_causes(
    about: About, evidence: Evidence, classes: Collection[ErrorClass], quiet: str
) -> Finding:
    """Fail for a cause of these classes, warn of one that training got over, else pass.

    `quiet` is what is said where the log names none.
    """
    run = evidence.run
    pointless = without_attempt(about, evidence)
    if run is None or pointless is not None:
        return pointless or about.not_applicable(evidence, "no run is asked about")
    cause = newest_cause(evidence, classes)
    if cause is None:
        if not evidence.logs and not run.attempts:
            return about.unknown(evidence, NOTHING_HEARD)
        return about.passed(evidence, quiet)
    return told(about, evidence, run, cause)


def told(
    about: About, evidence: Evidence, run: Run, cause: Cause, *, advice: str = "", more: str = ""
) -> Finding:
    """Return the row of a cause that was found.

    `advice` takes the place of the cause's own, and `more` stands behind its words.
    """
    text = f"{cause.error_class}: {cause.words} ({ago(cause.when, evidence.now)}){more}"
    command = f"tpudash logs {run.name}"
    if cause.is_overcome:
        return about.warned(
            evidence,
            f"{text}; it went on after that",
            advice=advice or "Nothing needs to be done unless it happens again.",
            action="pane-logs",
            command=command,
        )
    return about.failed(
        evidence, text, advice=advice or cause.advice, action="pane-logs", command=command
    )
