"""Alarms about money: what is wrong for as long as it is so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class AlarmLimits:
    """From where on there is an alarm, as the project's owner wants it.

    Attributes:
        per_hour_usd: The rate of everything above which there is one, or None for no limit.
        idle_for: For how long a node may be idle; an agent that was told to delete its own node
            needs a moment for it.
    """

    per_hour_usd: float | None = None
    idle_for: timedelta = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm that is on.

    Attributes:
        check_id: The check of the checklist that raised it.
        subject: Node name, run name, or "project".
        title: What should be so, in a few words.
        text: Its evidence when it was raised.
        advice: What to do about it, or "".
        since: When it was raised.
    """

    check_id: str
    subject: str
    title: str
    text: str
    advice: str
    since: datetime

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same alarm when it is looked at again."""
        return self.check_id, self.subject

    @property
    def place(self) -> str:
        """What it is about as the beginning of a line: `demo-1: `, or "" for the project."""
        return "" if self.subject == "project" else f"{self.subject}: "
