"""The one exception tree: every error that a user can meet has a title, a detail and a hint.

Exit codes are part of the command-line interface and are owned by this module.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpudash.domain.failure import Failure


class ExitCode(IntEnum):
    """What the process tells its caller; see the README's table of exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_ALLOWED = 3
    NOT_FOUND = 4
    NO_CAPACITY = 5
    OUTCOME_UNKNOWN = 6
    INTERRUPTED = 130


class TpudashError(Exception):
    """An error worth showing: what went wrong, the evidence, and what to do next.

    Args:
        title: One line that names what failed, without a full stop.
        detail: The evidence, in the cloud's or the system's own words. May be empty.
        hint: What the user can do about it, a command where there is one. May be empty.
        failure: The classified cause, where the cloud gave one.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(
        self, title: str, *, detail: str = "", hint: str = "", failure: Failure | None = None
    ) -> None:
        super().__init__(title)
        self.title = title
        self.detail = detail
        self.hint = hint
        self.failure = failure

    def __str__(self) -> str:
        return ": ".join(part for part in (self.title, self.detail) if part)


class OperationFailedError(TpudashError):
    """The cloud did what was asked for and it failed; nothing is left in doubt."""


class UnreachableError(TpudashError):
    """A service did not answer a question. Nothing is known, and nothing may be concluded."""


class UsageError(TpudashError):
    """What was asked for makes no sense as it was written."""

    exit_code = ExitCode.USAGE


class ConfigurationError(TpudashError):
    """A setting, a file or the machine's set-up stands in the way."""

    exit_code = ExitCode.USAGE


class NotAllowedError(TpudashError):
    """The caller is not signed in, or is signed in and may not do this."""

    exit_code = ExitCode.NOT_ALLOWED


class NotFoundError(TpudashError):
    """The named thing does not exist, by the definite word of whoever would know."""

    exit_code = ExitCode.NOT_FOUND


class CapacityError(TpudashError):
    """There is no capacity or no quota for what was asked for."""

    exit_code = ExitCode.NO_CAPACITY


class OutcomeUnknownError(TpudashError):
    """A change was asked for and no answer came back: it may or may not have happened."""

    exit_code = ExitCode.OUTCOME_UNKNOWN


def absent(what: str, where: str, *, silent: Iterable[str] = (), hint: str = "") -> TpudashError:
    """Return the error for a name that nothing listed has.

    Where a part of the answer is missing, nobody knows: only a whole answer means "not found".

    Args:
        what: Such as "run 'demo'".
        where: Such as "project p".
        silent: The zones that did not answer.
        hint: What to do if it is truly absent.
    """
    zones = ", ".join(silent)
    if not zones:
        return NotFoundError(f"there is no {what} in {where}", hint=hint)
    return UnreachableError(
        f"it is not known whether there is a {what} in {where}",
        detail=f"zones that did not answer: {zones}",
        hint="try again once they answer",
    )
