"""Whether the run's log names any other cause of trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.cause_check import without_attempt
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.log_causes import causes_of
from tpudash.diagnostics.words import ago
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "error-line",
    "Log names no trouble",
    Scope.RUN,
    why="The line that names the cause is seldom the last one.",
    rank=18,
    source=LOGS,
    group=Group.PROGRESS,
)
ELSEWHERE: Final = frozenset(
    {
        ErrorClass.HBM_OOM,
        ErrorClass.HOST_OOM,
        ErrorClass.DEVICE_BUSY,
        ErrorClass.VERSION,
        ErrorClass.CONNECT,
        ErrorClass.PARTIAL_SLICE,
        ErrorClass.AUTH_EXPIRED,
        ErrorClass.BUCKET_ACCESS,
        ErrorClass.LOCAL_PATH,
        ErrorClass.PREEMPTED,
        ErrorClass.STALLED,
    }
)
"""Classes that have a check of their own."""


def check(evidence: Evidence) -> Finding:
    """Fail for a cause in the newest attempt's lines that training did not get over."""
    run = evidence.run
    pointless = without_attempt(ABOUT, evidence)
    if run is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no run is asked about")
    if not evidence.logs:
        return ABOUT.unknown(evidence, "no line of its log was read")
    found = [one for one in causes_of(evidence) if one.error_class not in ELSEWHERE]
    open_ones = [one for one in found if not one.is_overcome]
    if open_ones:
        cause = open_ones[-1]
        return ABOUT.failed(
            evidence,
            f"{cause.error_class}: {cause.words} ({ago(cause.when, evidence.now)})",
            advice=cause.advice,
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    if found:
        cause = found[-1]
        return ABOUT.passed(
            evidence, f"{cause.error_class} {ago(cause.when, evidence.now)}, and it went on"
        )
    return ABOUT.passed(evidence, f"{len(evidence.logs):,} lines read")
