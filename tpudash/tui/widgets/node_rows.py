"""The rows of the nodes pane: runs with their nodes below, and whatever belongs to no run.

Joins what the snapshot holds into one list of facts; nothing here draws.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpudash.cost.estimate import node_cost, run_cost
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import RUN_LABEL, NodeHealth
from tpudash.domain.price import CostEstimate
from tpudash.domain.request import FINISHED_REQUEST_STATES
from tpudash.domain.run import RunState
from tpudash.store.state_times import StateTimes
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.widgets.node_notes import Notes, request_note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import NodeTimes, RequestTombstone, Snapshot, Tombstone
    from tpudash.tui.hints import KeyHints

OVER = frozenset({RunState.FINISHED, RunState.DELETED})
NO_COST = CostEstimate(per_hour_usd=0.0, accrued_usd=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFacts:
    """Everything that a row can say; None or "" is unknown.

    Attributes:
        state: The state's own word, verbatim.
        since: When the state began; of a node that was there before anybody looked, its creation.
        workers: Workers that the API lists, of `hosts`.
        note: One sentence: why it is so, and what can be done.
        costing: Returns the estimate at a time.
    """

    key: str
    subject: Subject
    name: str
    state: str
    is_child: bool = False
    is_last: bool = False
    health: str = ""
    since: datetime | None = None
    accelerator_type: str = ""
    scheduling: str = ""
    zone: str = ""
    project: str = ""
    owner: str = ""
    workers: int | None = None
    step: int | None = None
    target_step: int | None = None
    examples_per_second: float | None = None
    loss: float | None = None
    heard: datetime | None = None
    is_training: bool = False
    steps_at_risk: int | None = None
    note: str = ""
    words: str = ""
    costing: Callable[[PriceBook, datetime], CostEstimate] | None = None

    @property
    def chips(self) -> int | None:
        """Chips of the whole slice, or None for a type that the table does not know."""
        kind = load_catalog().find(self.accelerator_type)
        return kind.chips if kind else None

    @property
    def hosts(self) -> int | None:
        """Hosts of the slice, or None for a type that the table does not know."""
        kind = load_catalog().find(self.accelerator_type)
        return kind.hosts if kind else None

    @property
    def is_unhealthy(self) -> bool:
        """Whether the API says that the health is anything but good."""
        return self.health not in {"", NodeHealth.HEALTHY, NodeHealth.HEALTH_UNSPECIFIED}

    def cost(self, book: PriceBook, now: datetime) -> CostEstimate:
        """Return what it costs now and has cost so far."""
        return self.costing(book, now) if self.costing else NO_COST


@dataclass(frozen=True, slots=True)
class Group:
    """A row with the rows that stand below it."""

    head: RowFacts
    children: tuple[RowFacts, ...] = ()


def run_key(name: str) -> str:
    """Return the row key of a run."""
    return f"{SubjectKind.RUN}:{name}"


def node_key(name: str) -> str:
    """Return the row key of a node by its full name."""
    return f"{SubjectKind.NODE}:{name}"


def request_key(name: str) -> str:
    """Return the row key of a queued resource by its full name."""
    return f"{SubjectKind.REQUEST}:{name}"


def tombstone_key(name: str) -> str:
    """Return the row key of a vanished node or request by its full name."""
    return f"{SubjectKind.TOMBSTONE}:{name}"


def project_of(name: str) -> str:
    """Return the project of a full resource name, as the API wrote it."""
    parts = name.split("/", 2)
    return parts[1] if len(parts) == 3 else ""


def projects_of(snapshot: Snapshot) -> frozenset[str]:
    """Return the projects that are looked at, and those that anything listed lies in."""
    info = snapshot.connection
    listed = (snapshot.nodes, snapshot.requests, snapshot.tombstones, snapshot.request_tombstones)
    found = {project_of(name) for things in listed for name in things}
    # A single project may be called by its id in one place and by its number in another.
    watched = info.projects if info is not None and len(info.projects) > 1 else ()
    return frozenset(found.union(watched) - {""})


def build_groups(snapshot: Snapshot, hints: KeyHints, *, acts: bool = True) -> list[Group]:
    """Join runs, nodes, requests and what vanished; groups are in order of their names.

    Args:
        snapshot: What is known.
        hints: The keys that notes name.
        acts: Whether the cloud can be changed from here, so that notes may say with which key.
    """
    notes = Notes(hints, acts=acts)
    since = StateTimes(snapshot)
    nodes, requests, stones = _by_run(snapshot)
    gone = _gone_requests(snapshot)
    asked_for = {name for request in snapshot.requests.values() for name in request.node_names}
    groups = []
    for run in snapshot.runs.values():
        children = [
            *(
                _node_facts(node, run, snapshot, asked_for, notes, since)
                for node in nodes[run.name]
            ),
            *(_request_facts(request, snapshot) for request in requests[run.name]),
            *(_tombstone_facts(stone, run, notes) for stone in stones[run.name]),
            *(_gone_request_facts(stone, notes) for stone in gone[run.name]),
        ]
        head = _run_facts(run, nodes[run.name], stones[run.name], snapshot.times, notes)
        groups.append(Group(head, _as_children(children)))
    groups += [
        Group(_node_facts(node, None, snapshot, asked_for, notes, since)) for node in nodes[None]
    ]
    groups += [Group(_request_facts(request, snapshot)) for request in requests[None]]
    groups += [Group(_tombstone_facts(stone, None, notes)) for stone in stones[None]]
    groups += [Group(_gone_request_facts(stone, notes)) for stone in gone[None]]
    return sorted(groups, key=lambda group: (group.head.name, group.head.key))


def _by_run(
    snapshot: Snapshot,
) -> tuple[
    defaultdict[str | None, list[Node]],
    defaultdict[str | None, list[QueuedResource]],
    defaultdict[str | None, list[Tombstone]],
]:
    """Return nodes, requests and vanished nodes by the run that is known under their label."""
    runs = snapshot.runs
    nodes: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in snapshot.nodes.values():
        nodes[node.run if node.run in runs else None].append(node)
    stones: defaultdict[str | None, list[Tombstone]] = defaultdict(list)
    for stone in snapshot.tombstones.values():
        stones[stone.node.run if stone.node.run in runs else None].append(stone)
    requests: defaultdict[str | None, list[QueuedResource]] = defaultdict(list)
    for request in snapshot.requests.values():
        if not any(name in snapshot.nodes for name in request.node_names) or (
            request.state in FINISHED_REQUEST_STATES
        ):
            run = _run_of_request(request, snapshot)
            requests[run if run in runs else None].append(request)
    for found in nodes.values():
        found.sort(key=lambda node: (node.attempt or 0, node.name))
    return nodes, requests, stones


def _gone_requests(snapshot: Snapshot) -> defaultdict[str | None, list[RequestTombstone]]:
    """Return vanished requests by their run; one whose node is shown is told of there."""
    shown = snapshot.nodes.keys() | snapshot.tombstones.keys()
    found: defaultdict[str | None, list[RequestTombstone]] = defaultdict(list)
    for stone in snapshot.request_tombstones.values():
        if shown.isdisjoint(stone.request.node_names):
            run = stone.request.run
            found[run if run in snapshot.runs else None].append(stone)
    return found


def _run_of_request(request: QueuedResource, snapshot: Snapshot) -> str | None:
    if request.labels.get(RUN_LABEL):
        return request.labels[RUN_LABEL]
    for name in request.node_names:
        node = snapshot.nodes.get(name)
        if node is not None and node.run:
            return node.run
    return None


def _as_children(facts: list[RowFacts]) -> tuple[RowFacts, ...]:
    last = len(facts) - 1
    return tuple(replace(one, is_child=True, is_last=at == last) for at, one in enumerate(facts))


def _run_facts(
    run: Run,
    nodes: list[Node],
    stones: list[Tombstone],
    times: Mapping[str, NodeTimes],
    notes: Notes,
) -> RowFacts:
    spec = run.spec
    newest = nodes[-1] if nodes else None
    gone = {stone.node.name: stone.vanished for stone in stones}
    known_times = {node.name: times[node.name] for node in nodes if node.name in times}
    known_times.update(
        (stone.node.name, stone.times) for stone in stones if stone.times is not None
    )
    everyone = [*nodes, *(stone.node for stone in stones)]

    def costing(book: PriceBook, now: datetime) -> CostEstimate:
        return run_cost(run, everyone, known_times, book, now, vanished=gone)

    accelerator_type = spec.accelerator_type if spec else ""
    return RowFacts(
        key=run_key(run.name),
        subject=Subject(
            SubjectKind.RUN, run.name, run=run.name, node=newest.name if newest else None
        ),
        name=run.name,
        state=run.state,
        since=_run_since(run),
        accelerator_type=accelerator_type or (newest.accelerator_type if newest else ""),
        scheduling=spec.scheduling if spec else "",
        zone=newest.zone if newest else (spec.zone if spec else ""),
        project=project_of(newest.name) if newest else (spec.project if spec else ""),
        owner=run.owner,
        workers=len(newest.workers) if newest and not newest.is_dead else None,
        step=run.step,
        target_step=run.target_step,
        examples_per_second=(run.examples_per_second if run.state is RunState.TRAINING else None),
        loss=run.loss,
        heard=None if run.state in OVER else run.last_heard,
        is_training=run.state in {RunState.TRAINING, RunState.STALLED},
        steps_at_risk=run.steps_at_risk,
        note=notes.of_run(run),
        words=f"{run.name} {run.owner} {run.state} {run.reason}",
        costing=costing,
    )


def _run_since(run: Run) -> datetime | None:
    """Return when the run's state began, by the newest attempt's record."""
    if run.result is not None and run.state is RunState.FINISHED:
        return run.result.finished
    if run.spec is not None and run.state is RunState.DELETED:
        return run.spec.deleted
    if not run.attempts:
        return run.spec.created if run.spec else None
    newest = run.attempts[-1]
    return newest.ended or newest.started


def _record_of(node: Node, run: Run | None) -> AttemptRecord | None:
    if run is None:
        return None
    return next((record for record in run.attempts if record.attempt == node.attempt), None)


def _node_facts(
    node: Node,
    run: Run | None,
    snapshot: Snapshot,
    asked_for: set[str],
    notes: Notes,
    since: StateTimes,
) -> RowFacts:
    record = _record_of(node, run)
    times = snapshot.times.get(node.name)
    state_time = since.of(node)

    def costing(book: PriceBook, now: datetime) -> CostEstimate:
        return node_cost(node, times, record, book, now)

    return RowFacts(
        key=node_key(node.name),
        subject=Subject(SubjectKind.NODE, node.name, run=node.run, node=node.name),
        name=node.node_id,
        state=node.state,
        health=node.health or "",
        since=state_time.since if state_time else None,
        accelerator_type=node.accelerator_type,
        scheduling=node.scheduling,
        zone=node.zone,
        project=project_of(node.name),
        owner=node.owner or "",
        workers=len(node.workers),
        step=record.step if record else None,
        heard=record.updated if record and record.ended is None else None,
        note=notes.of_node(node, run, snapshot, asked_for),
        words=" ".join((node.name, node.state, *node.labels.values(), node.accelerator_type)),
        costing=costing,
    )


def _request_facts(request: QueuedResource, snapshot: Snapshot) -> RowFacts:
    note = request_note(request)
    run = _run_of_request(request, snapshot)
    return RowFacts(
        key=request_key(request.name),
        subject=Subject(SubjectKind.REQUEST, request.name, run=run),
        name=request.request_id,
        state=request.state,
        since=request.create_time,
        accelerator_type=request.accelerator_type,
        zone=request.zone,
        project=project_of(request.name),
        owner=request.owner or "",
        note=note,
        words=f"{request.name} {request.state} {note}",
    )


def _gone_request_facts(stone: RequestTombstone, notes: Notes) -> RowFacts:
    request = stone.request
    return RowFacts(
        key=tombstone_key(request.name),
        subject=Subject(SubjectKind.TOMBSTONE, request.name, run=request.run),
        name=request.request_id,
        state="GONE",
        since=stone.vanished,
        accelerator_type=request.accelerator_type,
        zone=request.zone,
        project=project_of(request.name),
        owner=request.owner or "",
        note=f"Queued request. {notes.of_gone(stone, request.state)}",
        words=f"{request.name} GONE {' '.join(request.labels.values())}",
    )


def _tombstone_facts(stone: Tombstone, run: Run | None, notes: Notes) -> RowFacts:
    node = stone.node
    record = _record_of(node, run)

    def costing(book: PriceBook, now: datetime) -> CostEstimate:
        return node_cost(node, stone.times, record, book, now, vanished=stone.vanished)

    return RowFacts(
        key=tombstone_key(node.name),
        subject=Subject(SubjectKind.TOMBSTONE, node.name, run=node.run, node=node.name),
        name=node.node_id,
        state="GONE",
        since=stone.vanished,
        accelerator_type=node.accelerator_type,
        scheduling=node.scheduling,
        zone=node.zone,
        project=project_of(node.name),
        owner=node.owner or "",
        step=record.step if record else None,
        note=notes.of_gone(stone, node.state),
        words=f"{node.name} GONE {' '.join(node.labels.values())}",
        costing=costing,
    )
