"""What could be given back: dead nodes and requests, leaked and idle nodes, and what is over time.

Nothing is deleted here, and what somebody made without tpudash is on the list but never marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from tpudash.cost.cap import cap_of
from tpudash.cost.estimate import combine
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import RUN_LABEL, NodeState, Scheduling
from tpudash.domain.request import FINISHED_REQUEST_STATES, RequestState
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from tpudash.cost.lives import Life
    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import Run
    from tpudash.store.snapshot import Snapshot

OVER: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})
PREEMPTIBLE_LIFE: Final = timedelta(hours=24)
"""Source: https://cloud.google.com/tpu/docs/preemptible"""
IDLE_FOR: Final = timedelta(minutes=15)
STARTING: Final = timedelta(minutes=30)
"""A node this young may belong to a run whose record is not there yet."""
UNTOUCHED: Final = frozenset({NodeState.DELETING, NodeState.STOPPING})


class Reason(StrEnum):
    """Why something could go."""

    DEAD = "dead"
    LEAKED = "leaked"
    IDLE = "idle"
    OVER_TIME = "over its time"
    DEAD_REQUEST = "dead request"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be given back.

    Attributes:
        name: Full resource name of a node or a queued resource.
        why: The evidence, as a clause.
        per_hour_usd: What is charged for it now; None where that is not known.
        accrued_usd: What it cost so far, or None.
        chips: Chips of quota that it holds, or None where its type is not known.
        is_ours: Whether tpudash made it, by its label.
        is_node: Whether it is a node, else a queued resource.
        since: From when on it is of no use, or None.
    """

    name: str
    reason: Reason
    why: str
    per_hour_usd: float | None
    accrued_usd: float | None
    chips: int | None
    is_ours: bool
    is_node: bool
    accelerator_type: str
    zone: str
    state: str
    run: str | None = None
    owner: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class CleanupRules:
    """What counts as idle or old.

    Attributes:
        idle_for: For how long a node must have been of no use.
        max_age: Beyond which age a node is over its time, or None for no such limit.
        runs_known: Whether all runs could be read: without that nothing is called leaked or idle.
    """

    idle_for: timedelta = IDLE_FOR
    max_age: timedelta | None = None
    runs_known: bool = True


def cleanup_candidates(
    snapshot: Snapshot, lives: Iterable[Life], now: datetime, rules: CleanupRules | None = None
) -> tuple[Candidate, ...]:
    """Return everything that could go, what costs most now first."""
    given = rules or CleanupRules()
    all_lives = tuple(lives)
    found = [
        candidate
        for life in all_lives
        if life.is_listed and (candidate := _of_node(life, snapshot, all_lives, now, given))
    ]
    found += [
        _of_request(request)
        for request in snapshot.requests.values()
        if request.state in FINISHED_REQUEST_STATES
    ]
    return tuple(sorted(found, key=_order))


def _order(candidate: Candidate) -> tuple[float, int, str]:
    return (-(candidate.per_hour_usd or 0.0), -(candidate.chips or 0), candidate.name)


def _of_node(
    life: Life, snapshot: Snapshot, lives: Sequence[Life], now: datetime, rules: CleanupRules
) -> Candidate | None:
    node = life.node
    if node is None or node.state in UNTOUCHED or node.zone in snapshot.unreachable:
        return None
    run = snapshot.runs.get(node.run or "")
    found = (
        _dead(node, snapshot)
        or _over_time(node, run, lives, now, rules)
        or (_unused(node, run, life, now, rules) if rules.runs_known else None)
    )
    if found is None:
        return None
    reason, why, since = found
    kind = load_catalog().find(node.accelerator_type)
    return Candidate(
        name=node.name,
        reason=reason,
        why=why,
        per_hour_usd=life.per_hour_usd,
        accrued_usd=life.estimate.accrued_usd,
        chips=kind.chips if kind else None,
        is_ours=node.run is not None,
        is_node=True,
        accelerator_type=node.accelerator_type,
        zone=node.zone,
        state=node.state,
        run=node.run,
        owner=node.owner,
        since=since,
    )


Found = tuple[Reason, str, "datetime | None"]


def _dead(node: Node, snapshot: Snapshot) -> Found | None:
    if not node.is_dead:
        return None
    times = snapshot.times.get(node.name)
    return Reason.DEAD, f"{node.state} and still listed", times.state_since if times else None


def _over_time(
    node: Node, run: Run | None, lives: Sequence[Life], now: datetime, rules: CleanupRules
) -> Found | None:
    age = now - node.create_time if node.create_time else None
    if run is not None and node.is_billing:
        own = combine(life.estimate for life in lives if life.run == run.name)
        cap = cap_of(run, own)
        if cap is not None and cap.is_reached:
            why = f"{run.name} may cost ${cap.cap_usd:,.2f} and has cost ${cap.spent_usd:,.2f}"
            return Reason.OVER_TIME, why, None
    if age is None:
        return None
    if node.scheduling is Scheduling.PREEMPTIBLE and age > PREEMPTIBLE_LIFE:
        return Reason.OVER_TIME, "preemptible, and older than 24 hours", None
    if rules.max_age is not None and age > rules.max_age:
        hours = age.total_seconds() / 3600
        return Reason.OVER_TIME, f"created {hours:,.0f} hours ago", None
    return None


def _unused(
    node: Node, run: Run | None, life: Life, now: datetime, rules: CleanupRules
) -> Found | None:
    """Return why a node that is not dead is of no use: its run is over, elsewhere, or not there."""
    if node.run is None:
        return _without_run(node, now, rules)
    if run is not None:
        return _leaked(node, run) or _idle(node, run, life, now, rules)
    if node.create_time is not None and now - node.create_time < STARTING:
        return None
    return Reason.LEAKED, f"its run {node.run} has no record", node.create_time


def _leaked(node: Node, run: Run) -> Found | None:
    newer = [record for record in run.attempts if record.attempt > (node.attempt or 0)]
    if newer:
        return Reason.LEAKED, f"{run.name} went on as attempt {newer[-1].attempt}", newer[0].started
    if run.state is RunState.DELETED:
        return Reason.LEAKED, f"{run.name} was deleted", run.spec.deleted if run.spec else None
    return None


def _idle(node: Node, run: Run, life: Life, now: datetime, rules: CleanupRules) -> Found | None:
    if run.state not in OVER or not node.is_billing:
        return None
    record = life.attempt
    since = (record.ended if record else None) or run.last_heard
    if since is not None and now - since < rules.idle_for:
        return None
    return Reason.IDLE, f"its run {run.name} is {run.state}", since


def _without_run(node: Node, now: datetime, rules: CleanupRules) -> Found | None:
    """Return a node that carries no run's label: what it does can't be seen from here."""
    if not node.is_billing or node.create_time is None or now - node.create_time < rules.idle_for:
        return None
    return Reason.IDLE, "it belongs to no run; what it does can't be seen", node.create_time


def _of_request(request: QueuedResource) -> Candidate:
    kind = load_catalog().find(request.accelerator_type)
    chips = kind.chips * max(1, len(request.node_names)) if kind else None
    failure = f": {request.failure}" if request.failure else ""
    ended = "never comes back" if request.state == RequestState.SUSPENDED else "failed"
    return Candidate(
        name=request.name,
        reason=Reason.DEAD_REQUEST,
        why=f"it {ended}{failure}",
        per_hour_usd=0.0,
        accrued_usd=None,
        chips=chips,
        is_ours=RUN_LABEL in request.labels,
        is_node=False,
        accelerator_type=request.accelerator_type,
        zone=request.zone,
        state=request.state,
        run=request.labels.get(RUN_LABEL),
    )


def marked(candidates: Iterable[Candidate], names: Iterable[str] = ()) -> tuple[Candidate, ...]:
    """Return what is to go: what is named, or else everything that tpudash made.

    A name is a full name, a node's or request's id, or a run.
    """
    wanted = frozenset(names)
    if not wanted:
        return tuple(one for one in candidates if one.is_ours)
    return tuple(
        one for one in candidates if wanted & {one.name, one.name.rsplit("/", 1)[-1], one.run}
    )
