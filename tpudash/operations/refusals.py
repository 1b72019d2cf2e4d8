"""Errors of the operations room: what is refused, and what is known of an error's cause."""

from __future__ import annotations

from typing import Final

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy, Scope
from tpudash.errors import (
    NotAllowedError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)

PASSING_CLASSES: Final = frozenset({ErrorClass.RATE_LIMIT, ErrorClass.INTERNAL, ErrorClass.CONNECT})
"""Causes that end by themselves, so that a question may be asked again."""


class RefusedError(OperationFailedError):
    """The operation makes no sense as things stand; nothing was changed."""


class NotMadeError(OperationFailedError):
    """The cloud gave up making something, and nothing of it is left: a definite end."""


def is_passing(error: TpudashError) -> bool:
    """Whether a question that met this error may well be answered a moment later."""
    if error.failure is not None and error.failure.error_class in PASSING_CLASSES:
        return True
    return isinstance(error, UnreachableError)


def leaves_doubt(error: TpudashError) -> bool:
    """Whether an operation that met this error may not be taken for ended.

    Silence tells nothing, and neither does a sign-in that has expired: the cloud works on.
    """
    if isinstance(error, NotMadeError):
        return False
    if isinstance(error, OutcomeUnknownError) or class_of(error) is ErrorClass.AUTH_EXPIRED:
        return True
    return is_passing(error)


def class_of(error: TpudashError) -> ErrorClass:
    """Return an error's class, UNCLASSIFIED where nobody classified it."""
    return error.failure.error_class if error.failure else ErrorClass.UNCLASSIFIED


def refused(
    title: str, error_class: ErrorClass, *, detail: str = "", hint: str = ""
) -> RefusedError:
    """Return a refusal with its class, which decides the exit code of a followed operation."""
    failure = Failure(error_class, detail or title, hint, RetryPolicy.NEVER, Scope())
    return RefusedError(title, detail=detail, hint=hint, failure=failure)


def failure_for(error: TpudashError) -> Failure:
    """Return the classified cause of any error of ours."""
    if error.failure is not None:
        return error.failure
    kind = ErrorClass.UNCLASSIFIED
    if isinstance(error, NotFoundError):
        kind = ErrorClass.GONE
    elif isinstance(error, OutcomeUnknownError):
        kind = ErrorClass.UNKNOWN_OUTCOME
    elif isinstance(error, NotAllowedError):
        kind = ErrorClass.PERMISSION
    elif isinstance(error, UnreachableError):
        kind = ErrorClass.CONNECT
    return Failure(kind, error.detail, error.hint, RetryPolicy.NEVER, Scope())
