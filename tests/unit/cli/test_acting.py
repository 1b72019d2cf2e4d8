"""What the end of an operation means as an exit code."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tpudash.commands.acting import exit_code_of
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy, Scope
from tpudash.domain.operation import OperationKind, OperationProgress, OperationState
from tpudash.errors import ExitCode

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("state", "cause", "code"),
    [
        (OperationState.DONE, None, ExitCode.DONE),
        (OperationState.FAILED, None, ExitCode.FAILED),
        (OperationState.FAILED, ErrorClass.QUOTA, ExitCode.NO_CAPACITY),
        (OperationState.FAILED, ErrorClass.PERMISSION, ExitCode.NOT_ALLOWED),
        (OperationState.UNKNOWN, None, ExitCode.OUTCOME_UNKNOWN),
        (OperationState.UNKNOWN, ErrorClass.CONNECT, ExitCode.OUTCOME_UNKNOWN),
        (OperationState.UNKNOWN, ErrorClass.AUTH_EXPIRED, ExitCode.NOT_ALLOWED),
        (OperationState.INTERRUPTED, None, ExitCode.INTERRUPTED),
    ],
)
def test_exit_codes(state: OperationState, cause: ErrorClass | None, code: ExitCode) -> None:
    failure = Failure(cause, "words", "", RetryPolicy.NEVER, Scope()) if cause else None
    progress = OperationProgress(
        "id", OperationKind.LAUNCH, "demo", state, "", NOW, NOW, failure=failure
    )
    assert exit_code_of(progress) is code
