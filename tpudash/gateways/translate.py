"""From a cloud's refusal to the one exception tree, with the classified cause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.classifier import classify
from tpudash.domain.failure import ErrorClass, RetryPolicy
from tpudash.errors import (
    CapacityError,
    NotAllowedError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)

if TYPE_CHECKING:
    from tpudash.domain.failure import CloudStatus, Failure

NO_ANSWER_CODES: Final = frozenset(
    {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL", "DATA_LOSS"}
)
"""Codes that a broken connection or a broken server gives: the change may have been made."""

NEVER_SENT: Final = ("failed to connect to all addresses", "errors resolving ")
"""gRPC's words for a call that found no connection, so that nothing left this machine."""

_ASK_AGAIN: Final = (
    "Nothing is known about it now, and nothing follows from that: ask again, and check the network"
    " if it stays so."
)

_NOT_ALLOWED: Final = frozenset(
    {
        ErrorClass.AUTH_EXPIRED,
        ErrorClass.PERMISSION,
        ErrorClass.API_OFF,
        ErrorClass.BILLING,
        ErrorClass.BUCKET_ACCESS,
        ErrorClass.LOCATION,
    }
)
_ABSENT: Final = frozenset({ErrorClass.GONE, ErrorClass.BUCKET_ACCESS})
_NO_CAPACITY: Final = frozenset(
    {ErrorClass.STOCKOUT, ErrorClass.QUOTA, ErrorClass.RATE_LIMIT, ErrorClass.RESERVATION}
)


def to_error(status: CloudStatus, what: str, *, changes: bool) -> TpudashError:
    """Return the error to raise for a refused or unanswered call.

    Args:
        status: What the cloud or the transport said.
        what: What was asked for, such as "list nodes".
        changes: Whether the call would change something, so that silence leaves it in doubt.
    """
    failure = classify(status)
    if not failure.evidence:
        failure = replace(failure, evidence=status.code)
    if failure.error_class is ErrorClass.AUTH_EXPIRED:
        return _error(NotAllowedError, f"not signed in to {what}", failure)
    if status.code in NO_ANSWER_CODES:
        return _unanswered(status, failure, what, changes=changes)
    if status.code == "NOT_FOUND" and failure.error_class in _ABSENT:
        return _error(NotFoundError, f"could not {what}: not found", failure)
    if failure.error_class in _NOT_ALLOWED:
        return _error(NotAllowedError, f"not allowed to {what}", failure)
    if failure.error_class in _NO_CAPACITY:
        return _error(CapacityError, f"could not {what}: {_short(failure)}", failure)
    return _error(OperationFailedError, f"could not {what}", failure)


def _unanswered(status: CloudStatus, failure: Failure, what: str, *, changes: bool) -> TpudashError:
    if not changes:
        if failure.error_class is ErrorClass.UNKNOWN_OUTCOME:
            failure = replace(failure, advice=_ASK_AGAIN)
        return _error(UnreachableError, f"no answer to {what}", failure)
    if status.message.startswith(NEVER_SENT):
        return _error(UnreachableError, f"could not {what}: nothing was sent", failure)
    unknown = replace(
        failure,
        error_class=ErrorClass.UNKNOWN_OUTCOME,
        retry=RetryPolicy.ASK_AGAIN,
        advice="It may or may not have happened. Look at what exists before doing it again.",
    )
    return _error(OutcomeUnknownError, f"no definite answer to {what}", unknown)


def _error(kind: type[TpudashError], title: str, failure: Failure) -> TpudashError:
    return kind(title, detail=failure.evidence, hint=failure.advice, failure=failure)


def _short(failure: Failure) -> str:
    place = failure.scope.zone or failure.scope.region
    words = {
        ErrorClass.STOCKOUT: "no capacity",
        ErrorClass.QUOTA: "over quota",
        ErrorClass.RATE_LIMIT: "too many calls",
        ErrorClass.RESERVATION: "the reservation is too small or not there",
    }[failure.error_class]
    return f"{words} in {place}" if place else words
