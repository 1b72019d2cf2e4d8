"""Whether something is changing, which decides how often sources are asked."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from tpudash.domain.node import TRANSIENT_STATES
from tpudash.domain.operation import OperationState
from tpudash.domain.request import WAITING_REQUEST_STATES, RequestState
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from tpudash.clock import Clock
    from tpudash.store.snapshot import Snapshot

BUSY_RUN_STATES: Final = frozenset({RunState.LAUNCHING, RunState.RESUMING})
SLOW_REQUEST_STATES: Final = frozenset({RequestState.WAITING_FOR_RESOURCES})
"""A request may wait for days; that is no reason to ask for it every other second."""


def is_changing(snapshot: Snapshot) -> bool:
    """Whether a node, a request, a run or an operation is on its way to another state."""
    return (
        any(node.state in TRANSIENT_STATES for node in snapshot.nodes.values())
        or any(
            request.state in WAITING_REQUEST_STATES - SLOW_REQUEST_STATES
            for request in snapshot.requests.values()
        )
        or any(run.state in BUSY_RUN_STATES for run in snapshot.runs.values())
        or any(
            operation.state == OperationState.RUNNING for operation in snapshot.operations.values()
        )
    )


class Activity(Enum):
    """How much goes on."""

    CHANGING = auto()
    STEADY = auto()
    IDLE = auto()
    """There is neither a node nor a request nor an operation that could make one."""


IDLE_AFTER_S: Final = 300.0
MOST_IDLE_S: Final = 60.0
"""The longest pause of an idle source: others may launch something at any time."""
PAUSE_PER_ANSWER: Final = 2.0
"""How much longer a pause is at least than the answer before it took: of thousands of nodes it
takes many calls, of which others need their share."""


def activity_of(snapshot: Snapshot) -> Activity:
    """Return how much goes on."""
    if is_changing(snapshot):
        return Activity.CHANGING
    return Activity.STEADY if snapshot.nodes or snapshot.requests else Activity.IDLE


class Rhythm:
    """How often a source is asked: often while something changes, rarely in an empty project.

    Args:
        interval_s: Seconds between two questions while nothing changes.
        while_changing_s: Seconds between two while something does.
    """

    def __init__(self, clock: Clock, interval_s: float, while_changing_s: float) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._while_changing_s = while_changing_s
        self._idle_since: float | None = None
        self._took_s = 0.0

    def took(self, seconds: float) -> None:
        """Note how long the last answer took, all pages of it."""
        self._took_s = seconds

    def interval_s(self, activity: Activity) -> float:
        """Return seconds until the next question."""
        return max(self._wanted_s(activity), PAUSE_PER_ANSWER * self._took_s)

    def _wanted_s(self, activity: Activity) -> float:
        if activity is not Activity.IDLE:
            self._idle_since = None
            is_changing_now = activity is Activity.CHANGING
            return (
                min(self._while_changing_s, self._interval_s)
                if is_changing_now
                else (self._interval_s)
            )
        now = self._clock.monotonic()
        self._idle_since = now if self._idle_since is None else self._idle_since
        idle_s = now - self._idle_since
        if idle_s < IDLE_AFTER_S:
            return self._interval_s
        # A tenth of how long nothing was there: twice as rarely for twice as long.
        return max(self._interval_s, min(idle_s / 10, MOST_IDLE_S))
