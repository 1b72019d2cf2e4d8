"""When a node was READY, as it was seen over several sessions: what costs are reckoned from.

A name may be used again, so a life is told by the node's name and the time of its creation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.node import Scheduling


@dataclass(frozen=True, slots=True)
class ReadySpan:
    """A time for which a node was READY.

    Attributes:
        begins_late: Whether it may have been READY before `start`, unseen.
        ends_early: Whether it may have been READY after `end`, unseen.
    """

    start: datetime
    end: datetime
    begins_late: bool = False
    ends_early: bool = False

    @property
    def is_lower_bound(self) -> bool:
        """Whether the node may have been READY for longer than that."""
        return self.begins_late or self.ends_early

    @property
    def hours(self) -> float:
        """Its length in hours, never negative, whatever the clocks said."""
        return max(0.0, (self.end - self.start).total_seconds() / 3600)

    def within(self, start: datetime, end: datetime) -> float:
        """Return how many hours of it lie between two times."""
        length = (min(self.end, end) - max(self.start, start)).total_seconds()
        return max(0.0, length / 3600)


@dataclass(frozen=True, slots=True)
class NodeLife:
    """What was seen of one life of a node.

    Attributes:
        name: Full resource name.
        create_time: When the API says it was created, or None where it gave none.
        spans: The times for which it was READY, oldest first.
        is_open: Whether it was READY when it was last seen, so that the last span goes on.
        last_seen: When it was last listed.
        preempted: When it was first seen PREEMPTED, or None.
        gone: When it was first found to be no longer listed, or None.
    """

    name: str
    create_time: datetime | None
    accelerator_type: str
    scheduling: Scheduling
    run: str | None
    owner: str | None
    attempt: int | None
    spans: tuple[ReadySpan, ...]
    is_open: bool
    last_seen: datetime
    preempted: datetime | None = None
    gone: datetime | None = None
