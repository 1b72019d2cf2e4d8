"""The immutable picture of everything that is known now, each part with the age of its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from tpudash.domain.alarm import Alarm
    from tpudash.domain.control import Control
    from tpudash.domain.finding import Finding
    from tpudash.domain.life import NodeLife, ReadySpan
    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.domain.operation import OperationProgress
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import Run

NODES: Final = "nodes"
REQUESTS: Final = "requests"
RUNS: Final = "runs"
METRICS: Final = "metrics"
LOGS: Final = "logs"
PRICES: Final = "prices"
CHECKLIST: Final = "checklist"
ENDPOINTS: Final = "endpoints"
"""The Prometheus endpoints of the settings; a source only where there are any."""
SOURCES: Final = (NODES, REQUESTS, RUNS, METRICS, LOGS, PRICES, CHECKLIST)


class SourceState(StrEnum):
    """How a source of facts is doing."""

    WAITING = "waiting"
    """Nothing was heard yet."""
    OK = "ok"
    FAILING = "failing"
    """What it said last is kept and grows old."""
    THROTTLED = "throttled"
    """The cloud wants to be asked less often; what it said last is kept meanwhile."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of facts: when it last answered, and what is wrong if it does not.

    Attributes:
        last_success: When it last answered, or None.
        title: What is wrong, in one line; empty when nothing is.
        interval_s: How often it is asked now.
    """

    name: str
    state: SourceState = SourceState.WAITING
    last_success: datetime | None = None
    last_attempt: datetime | None = None
    title: str = ""
    detail: str = ""
    hint: str = ""
    interval_s: float = 0.0

    def age(self, now: datetime) -> timedelta | None:
        """Return how old the source's facts are, or None if there are none."""
        return None if self.last_success is None else now - self.last_success


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """Where the facts come from, for labels on the screen only.

    Attributes:
        endpoint: `HOST:PORT` of a local endpoint, or None for Google Cloud.
        account: Who is signed in, or None if that is not known.
        projects: All projects that are looked at, the one that is operated first; () for that one.
    """

    project: str
    endpoint: str | None = None
    account: str | None = None
    is_emulator: bool = False
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTimes:
    """What was seen of a node's life by this process.

    Attributes:
        first_seen: When it was first listed.
        state_since: When its present state was first seen.
        ready_since: When it was first seen READY, or None.
        ready_until: When it was first seen no longer READY after that, or None.
        earlier: The times before for which it was READY, of a node that was so more than once.
        preempted: When it was first seen PREEMPTED, or None.
    """

    first_seen: datetime
    state_since: datetime
    ready_since: datetime | None = None
    ready_until: datetime | None = None
    earlier: tuple[ReadySpan, ...] = ()
    preempted: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A node that vanished, kept until the user dismisses it.

    Attributes:
        last_entries: What it logged last, oldest first; the log itself may forget them.
    """

    node: Node
    vanished: datetime
    times: NodeTimes | None = None
    last_entries: tuple[LogEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestTombstone:
    """A queued resource that vanished, kept until the user dismisses it.

    Attributes:
        last_entries: What the nodes that it asked for logged last, oldest first.
    """

    request: QueuedResource
    vanished: datetime
    last_entries: tuple[LogEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is known now. Nodes and requests by full name, runs by name.

    Attributes:
        unreachable: Locations whose nodes are unknown now, with when that was first seen.
        lives: Lives of nodes that this machine remembers, those that are over included.
        alarms: Alarms about money that are on, oldest first.
        operations: Operations of this session and those taken up from the journal, by id.
        control: Who may change the project, or None where that is not shared out.
    """

    connection: ConnectionInfo | None = None
    nodes: Mapping[str, Node] = field(default_factory=dict)
    times: Mapping[str, NodeTimes] = field(default_factory=dict)
    tombstones: Mapping[str, Tombstone] = field(default_factory=dict)
    requests: Mapping[str, QueuedResource] = field(default_factory=dict)
    request_tombstones: Mapping[str, RequestTombstone] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    lives: tuple[NodeLife, ...] = ()
    findings: tuple[Finding, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    operations: Mapping[str, OperationProgress] = field(default_factory=dict)
    unreachable: Mapping[str, datetime] = field(default_factory=dict)
    control: Control | None = None
    sources: Mapping[str, SourceStatus] = field(
        default_factory=lambda: {name: SourceStatus(name) for name in SOURCES}
    )

    def nodes_of(self, run: str) -> tuple[Node, ...]:
        """Return the nodes that carry a run's label, oldest attempt first."""
        found = [node for node in self.nodes.values() if node.run == run]
        return tuple(sorted(found, key=lambda node: (node.attempt or 0, node.name)))
