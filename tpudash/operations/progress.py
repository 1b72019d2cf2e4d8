"""How far operations got, in the form that screens and commands show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.domain.operation import OperationKind, OperationProgress
from tpudash.operations.launch import STEPS_TOTAL
from tpudash.operations.payload import (
    DeletePayload,
    LaunchPayload,
    ResumePayload,
    StandDownPayload,
    SupervisePayload,
)
from tpudash.operations.supervise import lock_of as supervisor_lock

if TYPE_CHECKING:
    from tpudash.operations.journal import JournalledOperation
    from tpudash.operations.payload import Payload


def project_of(payload: Payload) -> str:
    """Return the project that a payload is about."""
    if isinstance(payload, LaunchPayload | ResumePayload):
        return payload.spec.project
    return payload.project


def progress_of(operation: JournalledOperation) -> OperationProgress:
    """Return how far an operation got, by the journal."""
    return OperationProgress(
        operation_id=operation.operation_id,
        kind=operation.kind,
        run=operation.run,
        state=operation.state,
        message=operation.message or operation.title,
        started=operation.started,
        updated=operation.updated,
        nodes=operation.nodes,
    )


def steps_of(payload: Payload) -> int:
    """Return into how many steps the progress of an operation is counted."""
    if isinstance(payload, SupervisePayload):
        return payload.max_attempts
    if isinstance(payload, StandDownPayload):
        return 1
    if isinstance(payload, DeletePayload):
        return len(payload.doomed) + len(payload.requests)
    return STEPS_TOTAL


def lock_of(operation: JournalledOperation) -> str | None:
    """Return what an operation holds while somebody works on it, or None."""
    if operation.run is None:
        return None
    is_supervision = operation.kind is OperationKind.SUPERVISE
    return supervisor_lock(operation.run) if is_supervision else operation.run


def replaces(kind: OperationKind, former: OperationKind) -> bool:
    """Whether an operation makes one of another kind on the same run pointless."""
    if kind in {OperationKind.STAND_DOWN, OperationKind.SUPERVISE}:
        return former in {OperationKind.SUPERVISE, OperationKind.STAND_DOWN}
    return kind is OperationKind.DELETE or former is not OperationKind.SUPERVISE
