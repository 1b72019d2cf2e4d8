"""The launches and resumes that failed, as evidence for the checks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import (
    ELSEWHERE_HELPS,
    advice_on_class,
    describe_error,
    elsewhere,
    other_scheduling,
)
from tpudash.domain.failure import ErrorClass, Scope
from tpudash.domain.operation import OperationKind, OperationState

if TYPE_CHECKING:
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.operation import OperationProgress
    from tpudash.domain.run import RunSpec
    from tpudash.store.snapshot import Snapshot

CREATING: Final = frozenset({OperationKind.LAUNCH, OperationKind.RESUME})


@dataclass(frozen=True, slots=True)
class FailedCreation:
    """Why a node could not be made, as one of our operations or a run's spec tells it."""

    error_class: ErrorClass
    words: str
    advice: str
    is_unknown: bool = False
    zone: str | None = None


def newest_creation(snapshot: Snapshot, run: str) -> OperationProgress | None:
    """Return the newest launch or resume of a run that this session knows of."""
    found = [
        progress
        for progress in snapshot.operations.values()
        if progress.run == run and progress.kind in CREATING
    ]
    return max(found, key=lambda progress: progress.updated, default=None)


def failure_of_operation(progress: OperationProgress) -> FailedCreation | None:
    """Return how an operation failed, or None if it did not."""
    if progress.state not in {OperationState.FAILED, OperationState.UNKNOWN}:
        return None
    is_unknown = progress.state is OperationState.UNKNOWN
    failure = progress.failure
    if failure is None:
        kind = ErrorClass.UNKNOWN_OUTCOME if is_unknown else ErrorClass.UNCLASSIFIED
        return FailedCreation(kind, progress.message, "", is_unknown)
    return FailedCreation(
        failure.error_class,
        failure.evidence or progress.message,
        failure.advice,
        is_unknown or failure.error_class is ErrorClass.UNKNOWN_OUTCOME,
        failure.scope.zone,
    )


def failure_of_spec(spec: RunSpec | None) -> FailedCreation | None:
    """Return why the run's node could not be made, as its own record has it, or None."""
    if spec is None or spec.failure is None:
        return None
    kind, words, advice = describe_error(spec.failure)
    return FailedCreation(kind, words, advice, kind is ErrorClass.UNKNOWN_OUTCOME)


def advice_on(failure: FailedCreation, spec: RunSpec | None, prices: PriceBook) -> str:
    """Say what to do, with other zones and their prices where another zone is an answer."""
    zone = failure.zone or (spec.zone if spec else None)
    parts = [failure.advice or advice_on_class(failure.error_class, Scope(zone=zone))]
    if spec is not None and failure.error_class in ELSEWHERE_HELPS:
        what = (spec.accelerator_type, zone or spec.zone, spec.scheduling, prices)
        parts += [elsewhere(*what), other_scheduling(*what)]
    return " ".join(part for part in parts if part)
