"""When nodes became READY and ceased to be, by the audit log: of the time that nobody watched.

An operation writes an entry when it begins and one when it ends; writes are always logged and are
kept for 400 days. Source: https://cloud.google.com/tpu/docs/audit-logs
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tpudash.cost.ready_time import merged
from tpudash.domain.life import ReadySpan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tpudash.domain.life import NodeLife
    from tpudash.domain.log import LogEntry

_BEGIN: Final = frozenset({"CreateNode", "StartNode"})
_END: Final = frozenset({"StopNode", "DeleteNode", "terminate"})
AUDITED_METHODS: Final = (*sorted(_BEGIN), *sorted(_END))
"""The last part of the names of all methods that tell of a node's READY time."""


def late_lives(lives: Iterable[NodeLife]) -> tuple[NodeLife, ...]:
    """Return the lives whose beginning nobody watched."""
    return tuple(life for life in lives if life.spans and life.spans[0].begins_late)


def with_audit(lives: Iterable[NodeLife], entries: Iterable[LogEntry]) -> tuple[NodeLife, ...]:
    """Return lives with what the audit log tells of the time before they were first seen.

    Args:
        lives: What this machine remembers.
        entries: Audit entries of nodes, in any order; others tell nothing.
    """
    told: dict[str, set[tuple[datetime, str]]] = {}
    for entry in entries:
        event = _event_of(entry)
        if event is not None:
            told.setdefault(event[0], set()).add((entry.timestamp, event[1]))
    return tuple(_completed(life, sorted(told.get(life.name, ()))) for life in lives)


def _event_of(entry: LogEntry) -> tuple[str, str] | None:
    """Return the node and the method of an entry, unless it tells of a failure or nothing."""
    payload = entry.payload or {}
    name, method, status = (payload.get(key) for key in ("resourceName", "methodName", "status"))
    if not isinstance(name, str) or not isinstance(method, str):
        return None
    if isinstance(status, dict) and status.get("code"):
        return None
    verb = method.rpartition(".")[2]
    return (name, verb) if verb in AUDITED_METHODS else None


def _completed(life: NodeLife, events: Sequence[tuple[datetime, str]]) -> NodeLife:
    if not life.spans or not life.spans[0].begins_late:
        return life
    seen = life.spans[0].start
    # A name may have been another node's before.
    own = [one for one in events if life.create_time is None or one[0] >= life.create_time]
    before = [one for one in own if one[0] <= seen]
    spans = _spans(before, seen)
    return replace(life, spans=merged((*spans, *life.spans))) if spans else life


def _spans(events: Sequence[tuple[datetime, str]], seen: datetime) -> list[ReadySpan]:
    """Return the times of being READY until a node was first seen so."""
    spans: list[ReadySpan] = []
    begun: dict[str, datetime] = {}
    since: datetime | None = None
    for time, verb in events:
        if verb in _END:
            if since is not None:
                spans.append(ReadySpan(since, time))
            since = None
            begun.clear()
        elif verb in begun:
            # The second entry of an operation is its end, and only then the node is READY.
            since = time
        else:
            begun[verb] = time
    if since is not None:
        spans.append(ReadySpan(since, seen))
    return spans
