"""Collects what the history is to keep, from the store's change sets; quick, on the event loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.store.history_reading import Seen
from tpudash.store.past import GONE, CostSeen, NodeStateSeen, event_of
from tpudash.store.recording_masking import without_secrets
from tpudash.store.training_curve import training_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries
    from tpudash.store.changes import ChangeSet
    from tpudash.store.store import Store

EVENTS: Final = frozenset(
    {"start", "restore", "checkpoint", "eval", "preempt", "error", "warning", "finish"}
)
COST_EVERY_S: Final = 60.0
_Key = tuple[str, str, str, str]


class Collector:
    """Knows what was kept already, so that only what is new is written.

    Args:
        costs: Returns what the project costs an hour and has cost, or None for unknown.
    """

    def __init__(
        self, store: Store, costs: Callable[[], tuple[float | None, float | None]]
    ) -> None:
        self._store = store
        self._costs = costs
        self._states: dict[str, str] = {}
        self._pending_states: list[NodeStateSeen] = []
        self._series: set[str] = set()
        self._written_until: dict[_Key, datetime] = {}
        self._arrived = 0
        self._cost_at: datetime | None = None

    def notice(self, changes: ChangeSet, now: datetime) -> None:
        """Note what a change set touched; called for each."""
        nodes = self._store.snapshot.nodes
        for name in changes.nodes:
            state = str(nodes[name].state) if name in nodes else GONE
            if self._states.get(name, GONE) != state:
                self._states[name] = state
                self._pending_states.append(NodeStateSeen(now, name, state))
        self._series |= changes.series

    def take(self, now: datetime) -> Seen:
        """Return all that is new since the last time."""
        states, self._pending_states = tuple(self._pending_states), []
        node_ids, self._series = self._series, set()
        entries = self._fresh_entries()
        runs = {entry.run for entry in entries if entry.run and entry.event == "step"}
        return Seen(
            tuple(filter(None, map(self._fresh, self._series_of(node_ids)))),
            tuple(training_curve(entries, run) for run in sorted(runs)),
            states,
            tuple(
                replace(event_of(entry), text=without_secrets(entry.text))
                for entry in entries
                if entry.run and entry.event in EVENTS
            ),
            self._cost(now),
        )

    def leave_out(self, known: Iterable[MetricSeries]) -> None:
        """Take it that these points are written already, since they were read from there."""
        for one in known:
            if one.points:
                key, newest = _key(one), one.points[-1].time
                self._written_until[key] = max(newest, self._written_until.get(key, newest))

    def _fresh_entries(self) -> list[LogEntry]:
        logs = self._store.logs
        tail = logs.tail_since(self._arrived) if logs.arrived != self._arrived else []
        fresh = [entry for number, entry in tail if number >= self._arrived]
        self._arrived = logs.arrived
        return fresh

    def _series_of(self, node_ids: set[str]) -> list[MetricSeries]:
        return [one for node_id in sorted(node_ids) for one in self._store.series.of(node_id)]

    def _fresh(self, one: MetricSeries) -> MetricSeries | None:
        """Return a series with the points that were not taken yet; late ones are left out."""
        key = _key(one)
        until = self._written_until.get(key)
        points = tuple(p for p in one.points if until is None or p.time > until)
        if not points:
            return None
        self._written_until[key] = points[-1].time
        return replace(one, points=points)

    def _cost(self, now: datetime) -> tuple[CostSeen, ...]:
        if self._cost_at is not None and (now - self._cost_at).total_seconds() < COST_EVERY_S:
            return ()
        if not self._states:
            return ()
        self._cost_at = now
        return (CostSeen(now, *self._costs()),)


def _key(one: MetricSeries) -> _Key:
    labels = "".join(f"{name}={value};" for name, value in sorted(one.labels.items()))
    return (one.node_id or "", one.metric, one.worker_id, labels)
