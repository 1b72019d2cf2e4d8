"""What sources tell the store, and what the store tells those who watch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.alarm import Alarm
    from tpudash.domain.control import Control
    from tpudash.domain.finding import Finding
    from tpudash.domain.life import NodeLife
    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import NodeListing
    from tpudash.domain.operation import OperationProgress
    from tpudash.domain.request import RequestListing
    from tpudash.domain.run import Run
    from tpudash.domain.serving import ServingFigures
    from tpudash.store.past import CostSeen, Event, NodeStateSeen
    from tpudash.store.snapshot import ConnectionInfo, SourceStatus
    from tpudash.store.training_curve import TrainingCurve


@dataclass(frozen=True, slots=True)
class Connected:
    """The connection stands, and says what it is."""

    info: ConnectionInfo


@dataclass(frozen=True, slots=True)
class NodesListed:
    """A full listing of nodes; zones in `listing.unreachable` keep what was known."""

    listing: NodeListing
    as_of: datetime


@dataclass(frozen=True, slots=True)
class RequestsListed:
    """A full listing of queued resources."""

    listing: RequestListing
    as_of: datetime


@dataclass(frozen=True, slots=True)
class RunsRead:
    """All runs that are known now."""

    runs: tuple[Run, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True)
class LivesRead:
    """All lives of nodes that this machine remembers of the project."""

    lives: tuple[NodeLife, ...]


@dataclass(frozen=True, slots=True)
class LogsArrived:
    """Log entries, in any order.

    Attributes:
        suppressed: How many the source left out.
        lag_s: How old live entries were when they came; None if these are of the past.
    """

    entries: tuple[LogEntry, ...]
    suppressed: int = 0
    lag_s: float | None = None


@dataclass(frozen=True, slots=True)
class SeriesRead:
    """Time series of some metrics, to be merged with what is known."""

    series: tuple[MetricSeries, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True)
class ServingRead:
    """Figures of models that are served, from endpoints; those of runs come with their logs."""

    figures: tuple[ServingFigures, ...]


@dataclass(frozen=True, slots=True)
class CurvesRemembered:
    """Training curves that earlier sessions saw; what the log tells is newer."""

    curves: tuple[TrainingCurve, ...]


@dataclass(frozen=True, slots=True)
class PastRead:
    """States of nodes, turning points of runs, and costs that earlier sessions or this one saw."""

    states: tuple[NodeStateSeen, ...] = ()
    events: tuple[Event, ...] = ()
    costs: tuple[CostSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingsMade:
    """The checklist as it stands."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class AlarmChanged:
    """An alarm about money was raised or is over."""

    alarm: Alarm
    is_on: bool


@dataclass(frozen=True, slots=True)
class OperationChanged:
    """One operation moved on."""

    progress: OperationProgress


@dataclass(frozen=True, slots=True)
class ControlChanged:
    """Another console took control of the project, or this one has it now."""

    control: Control


@dataclass(frozen=True, slots=True)
class SourceReported:
    """A source answered, or failed to."""

    status: SourceStatus


@dataclass(frozen=True, slots=True)
class TombstonesDismissed:
    """The user no longer wants to see these vanished nodes and requests, by full name."""

    names: frozenset[str]


Change: TypeAlias = (
    Connected
    | NodesListed
    | RequestsListed
    | RunsRead
    | LivesRead
    | LogsArrived
    | SeriesRead
    | ServingRead
    | CurvesRemembered
    | PastRead
    | FindingsMade
    | AlarmChanged
    | OperationChanged
    | ControlChanged
    | SourceReported
    | TombstonesDismissed
)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Which parts of the snapshot are no longer as they were.

    Attributes:
        nodes: Full names of nodes that came, went or changed (tombstones included).
        requests: Full names of queued resources that did (tombstones included).
        logs: How many log entries were added.
        series: Node ids whose time series got new points.
        serving: Keys of served models that have new figures.
    """

    nodes: frozenset[str] = frozenset()
    requests: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    operations: frozenset[str] = frozenset()
    series: frozenset[str] = frozenset()
    serving: frozenset[str] = frozenset()
    logs: int = 0
    findings: bool = False
    alarms: bool = False
    connection: bool = False
    control: bool = False
    past: bool = False

    def __bool__(self) -> bool:
        """Whether anything changed at all."""
        return any(
            (
                self.nodes,
                self.requests,
                self.runs,
                self.sources,
                self.operations,
                self.series,
                self.serving,
                self.logs,
                self.findings,
                self.alarms,
                self.connection,
                self.control,
                self.past,
            )
        )

    def merge(self, later: ChangeSet) -> ChangeSet:
        """Return both change sets as one."""
        return ChangeSet(
            nodes=self.nodes | later.nodes,
            requests=self.requests | later.requests,
            runs=self.runs | later.runs,
            sources=self.sources | later.sources,
            operations=self.operations | later.operations,
            series=self.series | later.series,
            serving=self.serving | later.serving,
            logs=self.logs + later.logs,
            findings=self.findings or later.findings,
            alarms=self.alarms or later.alarms,
            connection=self.connection or later.connection,
            control=self.control or later.control,
            past=self.past or later.past,
        )


NOTHING = ChangeSet()
