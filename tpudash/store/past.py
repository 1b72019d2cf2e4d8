"""What happened, before this session and in it: states of nodes, turning points of runs, costs.

What earlier sessions saw comes out of the history file; the rest is told by the store itself, so
that a recording that is played has a past as well. Bounded in length.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node

GONE: Final = "GONE"
"""State of a node that is no longer listed; Google has no word for that."""
TOLD: Final = frozenset({"start", "restore", "preempt", "error", "warning", "finish", "eval"})
"""Trainer events that belong into the past; steps and checkpoints would fill it."""
MOST_NODES: Final = 5_000
MOST_STATES: Final = 100
"""How many states of one node are kept, the newest."""
MOST_EVENTS: Final = 5_000
MOST_COSTS: Final = 10_000
LONGEST_TEXT: Final = 500
_TIME: Final = attrgetter("time")


@dataclass(frozen=True, slots=True)
class Event:
    """A turning point of a run: checkpoint, restore, preemption, error, end."""

    time: datetime
    node_id: str
    run: str
    attempt: int
    name: str
    text: str
    insert_id: str = ""


@dataclass(frozen=True, slots=True)
class NodeStateSeen:
    """A node was seen in another state than before."""

    time: datetime
    node: str
    state: str


@dataclass(frozen=True, slots=True)
class CostSeen:
    """What the project cost an hour, and so far; None where that is not known."""

    time: datetime
    per_hour_usd: float | None
    accrued_usd: float | None


class Past:
    """States, events and costs in order of time, each known once.

    Attributes:
        revision: Grows with whatever is added.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._states: dict[str, list[NodeStateSeen]] = {}
        self._events: dict[tuple[datetime, str, str], Event] = {}
        self._ordered: tuple[Event, ...] | None = ()
        self._costs: dict[datetime, CostSeen] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """Turning points of all runs, oldest first."""
        if self._ordered is None:
            self._ordered = tuple(sorted(self._events.values(), key=_TIME))
        return self._ordered

    @property
    def costs(self) -> tuple[CostSeen, ...]:
        """What the project cost, oldest first."""
        return tuple(sorted(self._costs.values(), key=_TIME))

    @property
    def nodes(self) -> Collection[str]:
        """Full names of all nodes that were ever seen."""
        return self._states.keys()

    def states_of(self, node: str) -> tuple[NodeStateSeen, ...]:
        """Return the states of a node by its full name, oldest first, each when first seen."""
        return tuple(_changes(self._states.get(node, ())))

    def add(
        self,
        states: Iterable[NodeStateSeen] = (),
        events: Iterable[Event] = (),
        costs: Iterable[CostSeen] = (),
    ) -> None:
        """Take in what was seen, in any order."""
        for state in states:
            self._add_state(state)
        for event in events:
            self._add_event(event)
        self._costs |= {cost.time: cost for cost in costs}
        if len(self._costs) > MOST_COSTS:
            self._costs = {cost.time: cost for cost in self.costs[-MOST_COSTS:]}
        self.revision += 1

    def listed(self, touched: Iterable[str], nodes: Mapping[str, Node], as_of: datetime) -> None:
        """Note the states of nodes that came, went or changed."""
        for name in touched:
            state = str(nodes[name].state) if name in nodes else GONE
            known = self._states.get(name)
            if not known or known[-1].state != state:
                self._add_state(NodeStateSeen(as_of, name, state))
                self.revision += 1

    def heard(self, entries: Iterable[LogEntry]) -> None:
        """Note the turning points that log entries tell of."""
        for entry in entries:
            if entry.event in TOLD:
                self._add_event(event_of(entry))
                self.revision += 1

    def _add_state(self, state: NodeStateSeen) -> None:
        known = self._states.setdefault(state.node, [])
        if state in known:
            return
        insort(known, state, key=_TIME)
        if len(known) > MOST_STATES:
            kept = list(_changes(known))
            self._states[state.node] = kept[-MOST_STATES:]
        if len(self._states) > MOST_NODES:
            oldest = min(self._states.values(), key=lambda one: one[-1].time)
            del self._states[oldest[-1].node]

    def _add_event(self, event: Event) -> None:
        if event.name not in TOLD:
            return
        self._events[event.time, event.node_id, event.insert_id or event.text[:80]] = event
        self._ordered = None
        if len(self._events) > 2 * MOST_EVENTS:
            newest = self.events[-MOST_EVENTS:]
            self._events = {(e.time, e.node_id, e.insert_id or e.text[:80]): e for e in newest}
            self._ordered = newest


def event_of(entry: LogEntry) -> Event:
    """Return the turning point that a log entry tells of."""
    return Event(
        entry.timestamp,
        entry.node_id,
        entry.run or "",
        entry.attempt or 0,
        entry.event or "",
        entry.text[:LONGEST_TEXT],
        entry.insert_id,
    )


def _changes(states: Iterable[NodeStateSeen]) -> Iterable[NodeStateSeen]:
    """Leave out what only says again what was known; every session begins with that."""
    before = ""
    for state in states:
        if state.state != before:
            before = state.state
            yield state
