"""What the checks may look at: facts that are in the store already. No check asks for more."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tpudash.cost.estimate import attempt_on, hourly_rate
from tpudash.cost.lives import lives_of
from tpudash.domain.alarm import AlarmLimits
from tpudash.domain.run import RunState
from tpudash.domain.serving import ServingLimits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Node
    from tpudash.domain.probe import ProbeKey, ProbeResult
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.domain.serving import ServingFigures
    from tpudash.store.snapshot import Snapshot
    from tpudash.store.store import Store

ACTIONS: Final = frozenset({"launch", "resume", "delete", "pane-logs"})
"""Ids of actions in the registry that a finding may name."""
KEPT_EVENTS: Final = frozenset(
    {"start", "stage", "restore", "error", "warning", "devices", "check"}
)
"""Events that are looked at however many lines followed them."""
NEWEST_ENTRIES: Final = 2_000
RECENT: Final = timedelta(hours=24)
"""A run at rest for longer, with no node left, is history and not on the project's list."""
RESTING: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})


@dataclass(frozen=True)
class Evidence:
    """Everything that a check may judge by.

    Attributes:
        subject: Full name or id of a node, or name of a run, that is asked about; None for all.
        node: The node that a check of a node is about.
        run: The run that a check of a run is about, or the run of `node`.
        logs: Entries oldest first; in a check of a node or run, only its own.
        suppressed_log_entries: How many entries Cloud Logging left out of the tail, at least.
        probes: Answers to what checks ask of the world beside the store.
        series: Time series by node id.
        limits: From where on there is an alarm about money.
        serving: The newest figures of each model that is served.
        serving_limits: From where on a model is served badly.
        actions: Ids of the actions that are there to be taken; none in watch mode.
        memo: What several checks need of the same node or run, worked out once.
        shared: What all checks need, worked out once.
    """

    snapshot: Snapshot
    prices: PriceBook
    now: datetime
    subject: str | None = None
    node: Node | None = None
    run: Run | None = None
    logs: tuple[LogEntry, ...] = ()
    suppressed_log_entries: int = 0
    probes: Mapping[ProbeKey, ProbeResult] = field(default_factory=dict)
    series: Mapping[str, tuple[MetricSeries, ...]] = field(default_factory=dict)
    limits: AlarmLimits = field(default_factory=AlarmLimits)
    serving: tuple[ServingFigures, ...] = ()
    serving_limits: ServingLimits = field(default_factory=ServingLimits)
    actions: frozenset[str] = ACTIONS
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    shared: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_emulator(self) -> bool:
        """Whether the endpoint said that it is the local emulator."""
        return bool(self.snapshot.connection and self.snapshot.connection.is_emulator)

    @cached_property
    def lives(self) -> tuple[Life, ...]:
        """Everything that costs, each life of a node once; worked out once for all checks."""
        if "lives" not in self.shared:
            self.shared["lives"] = lives_of(self.snapshot, self.prices, self.now)
        lives: tuple[Life, ...] = self.shared["lives"]
        return lives

    def lives_of_run(self) -> tuple[Life, ...]:
        """Return the lives of the run that is asked about."""
        if "lives by run" not in self.shared:
            found: defaultdict[str | None, list[Life]] = defaultdict(list)
            for life in self.lives:
                found[life.run].append(life)
            self.shared["lives by run"] = found
        return tuple(self.shared["lives by run"].get(self.run.name if self.run else None, ()))

    @property
    def attempt(self) -> AttemptRecord | None:
        """The attempt that `node` was made for, or the newest of `run`."""
        if self.node is not None:
            return attempt_on(self.node, self.snapshot)
        return newest_attempt(self.run) if self.run else None

    def about_node(self, node: Node) -> Evidence:
        """Return the evidence narrowed to one node and its run."""
        logs = tuple(
            entry
            for entry in self._logs_by_node.get(node.node_id, ())
            if entry.zone in {"", node.zone}
        )
        run = self.snapshot.runs.get(node.run or "")
        return replace(self, node=node, run=run, logs=logs, memo={})

    def about_run(self, run: Run) -> Evidence:
        """Return the evidence narrowed to one run."""
        logs = tuple(self._logs_by_run.get(run.name, ()))
        return replace(self, node=None, run=run, logs=logs, memo={})

    @cached_property
    def _logs_by_node(self) -> Mapping[str, list[LogEntry]]:
        found: defaultdict[str, list[LogEntry]] = defaultdict(list)
        for entry in self.logs:
            found[entry.node_id].append(entry)
        return found

    @cached_property
    def _logs_by_run(self) -> Mapping[str, list[LogEntry]]:
        found: defaultdict[str, list[LogEntry]] = defaultdict(list)
        for entry in self.logs:
            found[entry.run or ""].append(entry)
        return found

    def newest_node(self) -> Node | None:
        """Return the listed node of the run's newest attempt, or None."""
        nodes = self.nodes_of_run()
        return nodes[-1] if nodes else None

    def nodes_of_run(self) -> tuple[Node, ...]:
        """Return the listed nodes of the run that is asked about, oldest attempt first."""
        if "nodes" not in self.shared:
            found: defaultdict[str, list[Node]] = defaultdict(list)
            for node in self.snapshot.nodes.values():
                found[node.run or ""].append(node)
            self.shared["nodes"] = found
        own = self.shared["nodes"].get(self.run.name, ()) if self.run else ()
        return tuple(sorted(own, key=lambda node: (node.attempt or 0, node.name)))

    def newest_event(self, event: str, attempt: int | None = None) -> Mapping[str, Any] | None:
        """Return the payload of the newest trainer event of a kind, or None."""
        for entry in reversed(self.logs):
            if entry.event == event and attempt in {None, entry.attempt}:
                return entry.payload
        return None

    def age_of(self, source: str) -> timedelta | None:
        """Return how old the facts of a source are, or None if it never answered."""
        status = self.snapshot.sources.get(source)
        return status.age(self.now) if status else None

    def rate_of(self, node: Node) -> float | None:
        """Return US dollars per hour of a node while it is READY, or None."""
        return hourly_rate(node.accelerator_type, node.zone, node.scheduling, self.prices)

    def nodes_in_question(self) -> tuple[Node, ...]:
        """Return the nodes that are asked about."""
        nodes = self.snapshot.nodes.values()
        if self.subject is None:
            return tuple(nodes)
        return tuple(node for node in nodes if self.subject in {node.name, node.node_id, node.run})

    def runs_in_question(self) -> tuple[Run, ...]:
        """Return the runs that are asked about; for the whole project, those that matter still."""
        runs = self.snapshot.runs
        if self.subject is None:
            return tuple(run for run in runs.values() if self._matters(run))
        if self.subject in runs:
            return (runs[self.subject],)
        names = {node.run for node in self.nodes_in_question()}
        return tuple(run for name, run in runs.items() if name in names)

    def _matters(self, run: Run) -> bool:
        if run.state not in RESTING or self.snapshot.nodes_of(run.name):
            return True
        spec = run.spec
        # A run whose node could not be made was never heard, and is as recent as its last try.
        tried = (spec.attempt_started or spec.created) if spec is not None else None
        heard = max((when for when in (run.last_heard, tried) if when), default=None)
        return run.state is not RunState.DELETED and heard is not None and self.now - heard < RECENT


def newest_attempt(run: Run) -> AttemptRecord | None:
    """Return the record of a run's newest attempt, or None."""
    return max(run.attempts, key=lambda record: record.attempt, default=None)


def gather(
    store: Store,
    prices: PriceBook,
    now: datetime,
    *,
    subject: str | None = None,
    actions: frozenset[str] = ACTIONS,
    probes: Mapping[ProbeKey, ProbeResult] | None = None,
    limits: AlarmLimits | None = None,
) -> Evidence:
    """Collect what the store knows; of the log, its newest entries and what is never too old."""
    nodes = store.snapshot.nodes.values()
    newest = store.logs.newest(NEWEST_ENTRIES)
    kept = store.logs.older_events(KEPT_EVENTS, len(newest))
    return Evidence(
        snapshot=store.snapshot,
        prices=prices,
        now=now,
        subject=subject,
        logs=(*kept, *newest),
        suppressed_log_entries=store.logs.suppressed,
        probes=probes or {},
        series={node.node_id: store.series.of(node.node_id) for node in nodes},
        limits=limits or AlarmLimits(),
        serving=store.serving.latest(),
        serving_limits=store.serving.limits,
        actions=actions,
    )
