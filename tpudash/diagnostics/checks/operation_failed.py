"""Whether an operation failed before there was any run to show it at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import advice_on, failure_of_operation
from tpudash.diagnostics.words import ago
from tpudash.domain.operation import OperationKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.operation import OperationProgress

ABOUT: Final = About(
    "operation-failed",
    "Operations went through",
    Scope.PROJECT,
    why="What failed half-way may have left something that costs money or holds quota.",
    rank=9,
    group=Group.CREATION,
)


def check(evidence: Evidence) -> Finding:
    """Judge the newest failure that no run of the list shows, and count the others."""
    snapshot = evidence.snapshot
    if not snapshot.operations:
        return ABOUT.not_applicable(evidence, "nothing was done in this session")
    failed = [
        progress
        for progress in snapshot.operations.values()
        if failure_of_operation(progress) is not None and _is_here(progress, evidence)
    ]
    if not failed:
        return ABOUT.passed(evidence, "none failed that is not shown at its run")
    newest = max(failed, key=lambda progress: progress.updated)
    failure = failure_of_operation(newest)
    if failure is None:
        return ABOUT.passed(evidence, "none failed")
    more = f"; and {len(failed) - 1} more" if len(failed) > 1 else ""
    judged = ABOUT.warned if failure.is_unknown else ABOUT.failed
    return judged(
        evidence,
        f"{newest.kind} {newest.run or ''} {ago(newest.updated, evidence.now)}: "
        f"{failure.error_class}: {failure.words}{more}",
        advice=advice_on(failure, None, evidence.prices),
        action="launch" if newest.kind is OperationKind.LAUNCH else None,
        command="tpudash nodes",
    )


def _is_here(progress: OperationProgress, evidence: Evidence) -> bool:
    """Whether a failure belongs here: that of a node of a listed run is a row of that run."""
    if evidence.subject not in {None, progress.run, *progress.nodes}:
        return False
    return progress.kind is OperationKind.DELETE or progress.run not in evidence.snapshot.runs
