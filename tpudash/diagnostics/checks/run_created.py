"""Why a run's node could not be made, and where else it could be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import ELSEWHERE_HELPS, launch_command, other_zones
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import (
    FailedCreation,
    advice_on,
    failure_of_operation,
    failure_of_spec,
    newest_creation,
)
from tpudash.domain.operation import OperationState
from tpudash.domain.run import AT_WORK, RunState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "run-created",
    "Node could be created",
    Scope.RUN,
    why="No capacity, no quota, a limit of calls and a missing right look alike and need "
    "different answers.",
    rank=8,
    group=Group.CREATION,
)
ALIVE: Final = frozenset({*AT_WORK, RunState.STALLED, RunState.FINISHED})


def check(evidence: Evidence) -> Finding:
    """Fail for a failed creation by its class; warn when nobody knows whether it happened."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state is RunState.DELETED:
        return ABOUT.not_applicable(evidence, "its nodes were deleted")
    if run.state in ALIVE:
        return ABOUT.passed(evidence, f"it is {run.state}, so its node was made")
    return _judge_creation(run, evidence)


def _judge_creation(run: Run, evidence: Evidence) -> Finding:
    progress = newest_creation(evidence.snapshot, run.name)
    attempt = evidence.attempt
    if progress is not None and attempt is not None and attempt.started > progress.updated:
        # Somebody made a node since, perhaps from another machine.
        progress = None
    failure = failure_of_operation(progress) if progress else failure_of_spec(run.spec)
    if failure is not None:
        return _judge_failure(run, failure, evidence)
    if progress is not None and progress.state is OperationState.RUNNING:
        return ABOUT.not_applicable(evidence, f"under way: {progress.message}")
    if run.attempts or evidence.newest_node() is not None:
        return ABOUT.passed(evidence, f"it is {run.state}, and its node was made")
    return ABOUT.unknown(evidence, f"it is {run.state}, and no node of it is known")


def _judge_failure(run: Run, failure: FailedCreation, evidence: Evidence) -> Finding:
    where = failure.zone or (run.spec.zone if run.spec else "")
    text = f"{failure.error_class}{f' in {where}' if where else ''}: {failure.words}"
    advice = advice_on(failure, run.spec, evidence.prices)
    if failure.is_unknown:
        return ABOUT.warned(evidence, text, advice=advice, command="tpudash nodes")
    if run.attempts:
        again, command = "resume", f"tpudash resume {run.name}"
    else:
        again, command = "launch", _launch(run, failure, evidence)
    return ABOUT.failed(evidence, text, advice=advice, action=again, command=command)


def _launch(run: Run, failure: FailedCreation, evidence: Evidence) -> str:
    """Return the command to launch it again, elsewhere if that is an answer."""
    spec = run.spec
    if spec is None:
        return f"tpudash launch {run.name}"
    what = (spec.accelerator_type, failure.zone or spec.zone, spec.scheduling, evidence.prices)
    zones = other_zones(*what) if failure.error_class in ELSEWHERE_HELPS else []
    return launch_command(spec, zones[0] if zones else None)
