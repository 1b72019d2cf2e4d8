"""Whether the node can read and write the run's bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.log_causes import newest_cause
from tpudash.diagnostics.words import ago
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "bucket-usable",
    "The node may use the bucket",
    Scope.RUN,
    why="The node acts as its own service account, and a slice reads no local files.",
    rank=11,
    source=LOGS,
    group=Group.PROGRESS,
)
CLASSES: Final = frozenset({ErrorClass.BUCKET_ACCESS, ErrorClass.LOCAL_PATH})


def check(evidence: Evidence) -> Finding:
    """Fail for a cause that the log or the record names; one that was got over is a warning."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    cause = newest_cause(evidence, CLASSES)
    if cause is None:
        if not evidence.logs and not run.attempts:
            return ABOUT.unknown(evidence, "neither a log line nor a record of it is known")
        return ABOUT.passed(evidence, "no refusal of the bucket is in its log")
    text = f"{cause.error_class}: {cause.words} ({ago(cause.when, evidence.now)})"
    if cause.is_overcome:
        return ABOUT.warned(
            evidence,
            f"{text}; it went on after that",
            advice="Nothing needs to be done unless it happens again.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    return ABOUT.failed(
        evidence,
        text,
        advice=cause.advice,
        action="pane-logs",
        command=f"tpudash logs {run.name}",
    )
