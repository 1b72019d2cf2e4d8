"""The one place where facts meet: sources apply changes, screens subscribe to change sets.

Everything happens on one event loop, so nothing here is locked and nothing here waits.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Final

from tpudash.domain.life import ReadySpan
from tpudash.domain.node import NodeState
from tpudash.store.changes import (
    NOTHING,
    AlarmChanged,
    Change,
    ChangeSet,
    Connected,
    ControlChanged,
    CurvesRemembered,
    FindingsMade,
    LivesRead,
    LogsArrived,
    NodesListed,
    OperationChanged,
    PastRead,
    RequestsListed,
    RunsRead,
    SeriesRead,
    ServingRead,
    SourceReported,
    TombstonesDismissed,
)
from tpudash.store.derived import agent_series
from tpudash.store.log_ring import LogRing
from tpudash.store.past import Past
from tpudash.store.series_book import SeriesBook
from tpudash.store.serving import ServingBook, served_in
from tpudash.store.snapshot import NodeTimes, RequestTombstone, Snapshot, Tombstone

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime
    from typing import TypeVar

    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.store.training_curve import TrainingCurve

    ValueT = TypeVar("ValueT")

logger = logging.getLogger(__name__)

MAX_TOMBSTONES: Final = 200
LAST_ENTRIES: Final = 20
"""How many of its log entries a vanished node keeps."""
LOOK_BACK: Final = 10_000


class Store:
    """Holds the present snapshot, the log entries and the time series.

    Attributes:
        snapshot: Everything that is known now; replaced as a whole, never changed in place.
    """

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.logs = LogRing()
        self.series = SeriesBook()
        self.serving = ServingBook()
        self.past = Past()
        self.remembered: dict[str, TrainingCurve] = {}
        self._subscribers: list[Callable[[ChangeSet], None]] = []

    def subscribe(self, callback: Callable[[ChangeSet], None]) -> Callable[[], None]:
        """Call `callback` after each change; returns a function that ends the subscription."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def apply(self, change: Change) -> ChangeSet:
        """Take in one change and tell every subscriber what it touched."""
        changes = self._apply(change)
        if changes:
            for callback in tuple(self._subscribers):
                callback(changes)
        return changes

    @singledispatchmethod
    def _apply(self, change: Change) -> ChangeSet:
        msg = f"the store does not know this change: {change!r}"
        raise TypeError(msg)

    @_apply.register
    def _(self, change: Connected) -> ChangeSet:
        if change.info == self.snapshot.connection:
            return NOTHING
        self.snapshot = replace(self.snapshot, connection=change.info)
        return ChangeSet(connection=True)

    @_apply.register
    def _(self, change: NodesListed) -> ChangeSet:
        before = self.snapshot
        silent = frozenset(change.listing.unreachable)
        after = {node.name: node for node in change.listing.nodes}
        after |= {
            name: node
            for name, node in before.nodes.items()
            if name not in after and node.zone in silent
        }
        vanished = before.nodes.keys() - after.keys()
        ids = {name: before.nodes[name].node_id for name in vanished}
        said = self.logs.last_of(set(ids.values()), LAST_ENTRIES, LOOK_BACK)
        tombstones = {
            name: Tombstone(before.nodes[name], change.as_of, before.times.get(name), said[node_id])
            for name, node_id in ids.items()
        }
        kept = {name: stone for name, stone in before.tombstones.items() if name not in after}
        stones = list((kept | tombstones).items())
        self._forget_series(name for name, _ in stones[:-MAX_TOMBSTONES])
        self.snapshot = replace(
            before,
            nodes=after,
            times={
                name: _times(node, before.nodes.get(name), before.times.get(name), change.as_of)
                for name, node in after.items()
            },
            tombstones=dict(stones[-MAX_TOMBSTONES:]),
            unreachable={
                zone: before.unreachable.get(zone, change.as_of) for zone in sorted(silent)
            },
        )
        touched = _differences(before.nodes, after)
        self.past.listed(touched, after, change.as_of)
        sources = frozenset(("nodes",)) if silent != frozenset(before.unreachable) else frozenset()
        return ChangeSet(nodes=touched, sources=sources)

    def _forget_series(self, nodes: Iterable[str]) -> None:
        self.series.forget(name.rsplit("/", 1)[-1] for name in nodes)

    @_apply.register
    def _(self, change: RequestsListed) -> ChangeSet:
        before = self.snapshot.requests
        silent = frozenset(change.listing.unreachable)
        after = {request.name: request for request in change.listing.requests}
        after |= {
            name: request
            for name, request in before.items()
            if name not in after and request.zone in silent
        }
        stones = {
            name: stone
            for name, stone in self.snapshot.request_tombstones.items()
            if name not in after
        }
        stones |= {
            name: self._request_tombstone(before[name], change.as_of)
            for name in before.keys() - after.keys()
        }
        self.snapshot = replace(
            self.snapshot,
            requests=after,
            request_tombstones=dict(list(stones.items())[-MAX_TOMBSTONES:]),
        )
        return ChangeSet(requests=_differences(before, after))

    def _request_tombstone(self, request: QueuedResource, vanished: datetime) -> RequestTombstone:
        ids = {name.rsplit("/", 1)[-1] for name in request.node_names}
        said = self.logs.last_of(ids, LAST_ENTRIES, LOOK_BACK) if ids else {}
        entries = sorted((one for some in said.values() for one in some), key=_when)
        return RequestTombstone(request, vanished, tuple(entries[-LAST_ENTRIES:]))

    @_apply.register
    def _(self, change: RunsRead) -> ChangeSet:
        before = self.snapshot.runs
        after = {run.name: run for run in change.runs}
        self.snapshot = replace(self.snapshot, runs=after)
        return ChangeSet(runs=_differences(before, after))

    @_apply.register
    def _(self, change: LivesRead) -> ChangeSet:
        if change.lives == self.snapshot.lives:
            return NOTHING
        before = {life.name: life for life in self.snapshot.lives}
        after = {life.name: life for life in change.lives}
        self.snapshot = replace(self.snapshot, lives=change.lives)
        return ChangeSet(nodes=_differences(before, after))

    @_apply.register
    def _(self, change: LogsArrived) -> ChangeSet:
        self.logs.suppressed += change.suppressed
        if change.lag_s is not None:
            self.logs.lag_s = change.lag_s
        fresh = self.logs.add(change.entries)
        self.past.heard(fresh)
        return ChangeSet(
            logs=len(fresh),
            series=self.series.add(agent_series(fresh)),
            serving=self.serving.add(served_in(fresh)),
        )

    @_apply.register
    def _(self, change: SeriesRead) -> ChangeSet:
        return ChangeSet(series=self.series.add(change.series))

    @_apply.register
    def _(self, change: ServingRead) -> ChangeSet:
        return ChangeSet(serving=self.serving.add(change.figures))

    @_apply.register
    def _(self, change: CurvesRemembered) -> ChangeSet:
        self.remembered |= {curve.run: curve for curve in change.curves}
        return ChangeSet(runs=frozenset(curve.run for curve in change.curves))

    @_apply.register
    def _(self, change: PastRead) -> ChangeSet:
        self.past.add(change.states, change.events, change.costs)
        return ChangeSet(past=True)

    @_apply.register
    def _(self, change: FindingsMade) -> ChangeSet:
        if change.findings == self.snapshot.findings:
            return NOTHING
        self.snapshot = replace(self.snapshot, findings=change.findings)
        return ChangeSet(findings=True)

    @_apply.register
    def _(self, change: AlarmChanged) -> ChangeSet:
        others = tuple(one for one in self.snapshot.alarms if one.key != change.alarm.key)
        alarms = (*others, change.alarm) if change.is_on else others
        if alarms == self.snapshot.alarms:
            return NOTHING
        self.snapshot = replace(self.snapshot, alarms=alarms)
        return ChangeSet(alarms=True)

    @_apply.register
    def _(self, change: OperationChanged) -> ChangeSet:
        progress = change.progress
        if self.snapshot.operations.get(progress.operation_id) == progress:
            return NOTHING
        operations = {**self.snapshot.operations, progress.operation_id: progress}
        self.snapshot = replace(self.snapshot, operations=operations)
        return ChangeSet(operations=frozenset((progress.operation_id,)))

    @_apply.register
    def _(self, change: ControlChanged) -> ChangeSet:
        if change.control == self.snapshot.control:
            return NOTHING
        self.snapshot = replace(self.snapshot, control=change.control)
        return ChangeSet(control=True)

    @_apply.register
    def _(self, change: SourceReported) -> ChangeSet:
        status = change.status
        if self.snapshot.sources.get(status.name) == status:
            return NOTHING
        self.snapshot = replace(
            self.snapshot, sources={**self.snapshot.sources, status.name: status}
        )
        return ChangeSet(sources=frozenset((status.name,)))

    @_apply.register
    def _(self, change: TombstonesDismissed) -> ChangeSet:
        before = self.snapshot
        nodes = change.names & before.tombstones.keys()
        requests = change.names & before.request_tombstones.keys()
        self.snapshot = replace(
            before,
            tombstones=_without(before.tombstones, nodes),
            request_tombstones=_without(before.request_tombstones, requests),
        )
        self._forget_series(nodes)
        return ChangeSet(nodes=frozenset(nodes), requests=frozenset(requests))


def _when(entry: LogEntry) -> datetime:
    return entry.timestamp


def _without(stones: Mapping[str, ValueT], names: Collection[str]) -> dict[str, ValueT]:
    return {name: stone for name, stone in stones.items() if name not in names}


def _differences(before: Mapping[str, ValueT], after: Mapping[str, ValueT]) -> frozenset[str]:
    """Return the keys that came, went, or hold another value."""
    return frozenset(
        key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
    )


def _times(node: Node, before: Node | None, known: NodeTimes | None, as_of: datetime) -> NodeTimes:
    """Bring a node's observed times up to date with its present state."""
    is_ready = node.state == NodeState.READY
    if before is None or known is None:
        is_preempted = node.state == NodeState.PREEMPTED
        return NodeTimes(
            as_of,
            as_of,
            ready_since=as_of if is_ready else None,
            preempted=as_of if is_preempted else None,
        )
    if before.state == node.state:
        return known
    if is_ready:
        return replace(
            known,
            state_since=as_of,
            ready_since=as_of,
            ready_until=None,
            earlier=(*known.earlier, *_over(known)),
        )
    was_ready = before.state == NodeState.READY
    is_preempted = known.preempted is None and node.state == NodeState.PREEMPTED
    return replace(
        known,
        state_since=as_of,
        ready_until=as_of if was_ready else known.ready_until,
        preempted=as_of if is_preempted else known.preempted,
    )


def _over(known: NodeTimes) -> tuple[ReadySpan, ...]:
    """Return the span that is over when a node becomes READY once more."""
    if known.ready_since is None or known.ready_until is None:
        return ()
    begins_late = known.ready_since <= known.first_seen
    return (ReadySpan(known.ready_since, known.ready_until, begins_late=begins_late),)
