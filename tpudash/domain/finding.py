"""Rows of the troubleshooting checklist."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


class Verdict(StrEnum):
    """The outcome of one check; what could not be found out is unknown, never a pass."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: verdict, evidence, why it matters, and what to do.

    Attributes:
        check_id: Stable id of the check, such as `node-ready`.
        subject: Node name, run name, or "project".
        action: Id of the action in the registry that helps, if one does.
        command: A command line that helps, if no action does.
        as_of: When the evidence was read; its age is the age of the verdict.
        rank: Place among rows of the same verdict; what explains others has a low one.
        group: The kind of trouble that the check is about, such as `creation fails`.
    """

    check_id: str
    title: str
    verdict: Verdict
    evidence: str
    why: str = ""
    advice: str = ""
    subject: str = "project"
    action: str | None = None
    command: str | None = None
    as_of: datetime | None = None
    group: str = ""
    rank: int = 50
