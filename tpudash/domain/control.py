"""Who has control of a project: one operator at a time may change the cloud from a console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Holder:
    """The console that has control.

    Attributes:
        owner: Who sits at it, by the name under which they launch runs.
        host: The machine that it runs on.
        pid: Its process.
        since: When it took control.
        place: Where it was opened from, such as a terminal, or "".
    """

    owner: str
    host: str
    pid: int
    since: datetime
    place: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """How things stand.

    Attributes:
        is_ours: This console has control.
        holder: Who has it; None when nobody can tell.
        problem: Why control can't be shared out, or "".
    """

    is_ours: bool
    holder: Holder | None = None
    problem: str = ""


class ControlPort(Protocol):
    """What a console asks before it changes anything. Watch mode has none."""

    def check(self) -> Control:
        """Say how things stand, and take control where nobody has it; quick."""
        ...

    def take(self) -> Control:
        """Take control away from whoever has it; quick."""
        ...

    def release(self) -> None:
        """Give control up, if it is ours."""
        ...
