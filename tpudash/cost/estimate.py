"""What nodes and runs cost: chips x dated price x the time for which they were seen READY.

Charges run while a node is READY, and a preemption within a minute of the node's creation is
free. Source: https://cloud.google.com/tpu/pricing, https://cloud.google.com/tpu/docs/preemptible
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import NodeState
from tpudash.domain.price import CostEstimate
from tpudash.domain.run import AttemptState
from tpudash.store.snapshot import NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Node, Scheduling
    from tpudash.domain.price import Price
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import NodeTimes, Snapshot

FREE_PREEMPTION: Final = timedelta(minutes=1)
USUAL_CREATION: Final = timedelta(minutes=10)
"""A node that is first heard of later than this after its creation has a past nobody watched."""
UNCHARGED_STATES: Final = frozenset(NodeState) - {
    NodeState.READY,
    NodeState.UNKNOWN,
    NodeState.STATE_UNSPECIFIED,
}
"""States that say for sure that nothing is charged for the TPU."""
NOTHING: Final = CostEstimate(per_hour_usd=0.0, accrued_usd=0.0)


@dataclass(frozen=True, slots=True)
class Span:
    """The time for which a node was READY.

    Attributes:
        is_lower_bound: Whether it may have been READY for longer than that.
    """

    start: datetime
    end: datetime
    is_lower_bound: bool = False

    @property
    def hours(self) -> float:
        """Its length in hours, never negative, whatever the clocks said."""
        return max(0.0, (self.end - self.start).total_seconds() / 3600)


@dataclass(frozen=True, slots=True)
class ProjectTotals:
    """What everything together costs; the two figures are "at least" by themselves.

    Attributes:
        billing_nodes: How many nodes are READY now.
        unpriced: Full names of listed nodes whose rate now is not known.
        uses_example_prices: Whether a price is in it that may be far off.
    """

    per_hour_usd: float | None
    accrued_usd: float | None
    per_hour_is_lower_bound: bool = False
    accrued_is_lower_bound: bool = False
    billing_nodes: int = 0
    unpriced: tuple[str, ...] = ()
    uses_example_prices: bool = False


def hourly_rate(
    accelerator_type: str, zone: str, scheduling: Scheduling, book: PriceBook
) -> float | None:
    """Return US dollars per hour of a READY node of this type, or None if no price is known."""
    return _rate(accelerator_type, book.price_for(accelerator_type, zone, scheduling))


def node_cost(
    node: Node,
    times: NodeTimes | None,
    attempt: AttemptRecord | None,
    book: PriceBook,
    now: datetime,
    *,
    vanished: datetime | None = None,
) -> CostEstimate:
    """Return what a node costs now, and what it has cost so far.

    The READY time begins with the best evidence there is: the change to READY if it was watched,
    else the start of the agent, else the node's creation. It ends when the node was first seen no
    longer READY, else when the agent ended or last wrote, and then the total is a lower bound.

    Args:
        node: The node as it was last listed.
        times: What was watched of the node's life, or None.
        attempt: The record of the attempt that ran on it, or None.
        book: The prices to use.
        now: Until when a READY node is charged for.
        vanished: When the node was first found to be no longer listed, if that is so.
    """
    price = book.price_for(node.accelerator_type, node.zone, node.scheduling)
    rate = _rate(node.accelerator_type, price)
    per_hour = rate_now(node, rate) if vanished is None else 0.0
    if _never_ready(node, times, attempt, vanished):
        return CostEstimate(per_hour, 0.0, price=price)
    span = _ready_span(node, times, attempt, now, vanished)
    if span is not None and _was_free(node, span):
        return CostEstimate(per_hour, 0.0, price=price)
    if span is None or rate is None:
        return CostEstimate(per_hour, None, is_lower_bound=True, price=price)
    return CostEstimate(per_hour, rate * span.hours, span.is_lower_bound, price)


def rate_now(node: Node, rate: float | None) -> float | None:
    """Return the part of a node's rate that is charged in its present state.

    It is None, whatever the price, in a state of which nobody knows whether it is charged.
    """
    if node.state in UNCHARGED_STATES:
        return 0.0
    return rate if node.is_billing else None


def run_cost(
    run: Run,
    nodes: Iterable[Node],
    times: Mapping[str, NodeTimes],
    book: PriceBook,
    now: datetime,
    *,
    vanished: Mapping[str, datetime] | None = None,
) -> CostEstimate:
    """Return what a run costs now and has cost so far, over all its attempts.

    An attempt whose node is among `nodes` costs what its node costs; one whose node is gone is
    known by its record alone.

    Args:
        run: The run with the records of its attempts.
        nodes: Nodes of any run, listed or vanished; only those of this run count.
        times: What was watched of the nodes, by full name.
        book: The prices to use.
        now: Until when a READY node is charged for.
        vanished: When nodes were first found to be no longer listed, by full name.
    """
    gone = vanished or {}
    records = {record.attempt: record for record in run.attempts}
    own = [node for node in nodes if node.run == run.name]
    on_nodes = {node.attempt for node in own}
    parts = [
        node_cost(
            node,
            times.get(node.name),
            records.get(node.attempt or 0),
            book,
            now,
            vanished=gone.get(node.name),
        )
        for node in own
    ]
    parts += [
        attempt_cost(record, run, book, now)
        for number, record in records.items()
        if number not in on_nodes
    ]
    return combine(parts)


def attempt_cost(record: AttemptRecord, run: Run, book: PriceBook, now: datetime) -> CostEstimate:
    """Return what an attempt has cost whose node is no longer known: nothing now.

    A node lives on after its attempt ended, so only for a preemption is the end of the one the
    end of the other.
    """
    spec = run.spec
    kind = record.accelerator_type or (spec.accelerator_type if spec else "")
    zone = record.zone or (spec.zone if spec else "")
    price = book.price_for(kind, zone, spec.scheduling) if spec and zone else None
    rate = _rate(kind, price)
    if rate is None:
        return CostEstimate(0.0, None, is_lower_bound=True, price=price)
    end = min(record.ended or record.updated, now)
    is_exact = record.ended is not None and record.state == AttemptState.PREEMPTED
    return CostEstimate(0.0, rate * Span(record.started, end).hours, not is_exact, price)


def node_costs(snapshot: Snapshot, book: PriceBook, now: datetime) -> dict[str, CostEstimate]:
    """Return the cost of every listed and every vanished node, by full name."""
    gone = {name: stone.vanished for name, stone in snapshot.tombstones.items()}
    times = _times_of(snapshot)
    return {
        node.name: node_cost(
            node,
            times.get(node.name),
            attempt_on(node, snapshot),
            book,
            now,
            vanished=gone.get(node.name),
        )
        for node in _all_nodes(snapshot)
    }


def attempt_on(node: Node, snapshot: Snapshot) -> AttemptRecord | None:
    """Return the record of the attempt that a node was made for, or None."""
    run = snapshot.runs.get(node.run or "")
    records = run.attempts if run else ()
    return next((record for record in records if record.attempt == node.attempt), None)


def run_cost_in(snapshot: Snapshot, run: Run, book: PriceBook, now: datetime) -> CostEstimate:
    """Return what a run costs and has cost, by everything that a snapshot knows."""
    gone = {name: stone.vanished for name, stone in snapshot.tombstones.items()}
    return run_cost(run, _all_nodes(snapshot), _times_of(snapshot), book, now, vanished=gone)


def project_totals(snapshot: Snapshot, book: PriceBook, now: datetime) -> ProjectTotals:
    """Return what all nodes and runs that are known cost together.

    Each attempt counts once, by its node while that is known and by its record afterwards.
    """
    if _nothing_heard(snapshot):
        return ProjectTotals(None, None, per_hour_is_lower_bound=True, accrued_is_lower_bound=True)
    by_node = node_costs(snapshot, book, now)
    of_run: defaultdict[str | None, list[Node]] = defaultdict(list)
    for node in _all_nodes(snapshot):
        of_run[node.run if node.run in snapshot.runs else None].append(node)
    times = _times_of(snapshot)
    gone = {name: stone.vanished for name, stone in snapshot.tombstones.items()}
    loose = [by_node[node.name] for node in of_run[None]]
    runs = [
        run_cost(run, of_run[name], times, book, now, vanished=gone)
        for name, run in snapshot.runs.items()
    ]
    accrued = combine([*loose, *runs])
    listed = [by_node[name] for name in snapshot.nodes]
    rates = [cost.per_hour_usd for cost in listed if cost.per_hour_usd is not None]
    unpriced = tuple(sorted(name for name in snapshot.nodes if by_node[name].per_hour_usd is None))
    return ProjectTotals(
        per_hour_usd=sum(rates) if rates or not listed else None,
        accrued_usd=accrued.accrued_usd,
        per_hour_is_lower_bound=bool(unpriced or snapshot.unreachable),
        accrued_is_lower_bound=accrued.is_lower_bound or bool(snapshot.unreachable),
        billing_nodes=sum(node.is_billing for node in snapshot.nodes.values()),
        unpriced=unpriced,
        uses_example_prices=any(cost.price and cost.price.is_example for cost in listed),
    )


def _all_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    vanished = (stone.node for stone in snapshot.tombstones.values())
    return (*snapshot.nodes.values(), *vanished)


def _times_of(snapshot: Snapshot) -> dict[str, NodeTimes]:
    vanished = {name: stone.times for name, stone in snapshot.tombstones.items() if stone.times}
    return {**vanished, **snapshot.times}


def _nothing_heard(snapshot: Snapshot) -> bool:
    """Whether nobody could be asked, so that an empty snapshot does not mean that all is gone."""
    source = snapshot.sources.get(NODES)
    is_empty = not (snapshot.nodes or snapshot.runs or snapshot.tombstones)
    return is_empty and source is not None and source.last_success is None


def combine(parts: Iterable[CostEstimate]) -> CostEstimate:
    """Add estimates up. What is not known is left out, and the sum is then a lower bound.

    A sum of which no part is known is not known either; the sum of nothing is 0.
    """
    estimates = tuple(parts)
    rates = [part.per_hour_usd for part in estimates if part.per_hour_usd is not None]
    totals = [part.accrued_usd for part in estimates if part.accrued_usd is not None]
    prices = {part.price for part in estimates}
    return CostEstimate(
        per_hour_usd=sum(rates) if rates or not estimates else None,
        accrued_usd=sum(totals) if totals or not estimates else None,
        is_lower_bound=any(part.is_lower_bound for part in estimates)
        or len(rates) < len(estimates)
        or len(totals) < len(estimates),
        price=prices.pop() if len(prices) == 1 else None,
    )


def _rate(accelerator_type: str, price: Price | None) -> float | None:
    kind = load_catalog().find(accelerator_type)
    return kind.chips * price.per_chip_hour_usd if kind and price else None


def _never_ready(
    node: Node, times: NodeTimes | None, attempt: AttemptRecord | None, vanished: datetime | None
) -> bool:
    """Whether the node is still being created, with no sign that it was ever READY."""
    was_seen = times is not None and times.ready_since is not None
    was_watched_from_creation = times is not None and node.state == NodeState.CREATING
    is_creating = node.state == NodeState.CREATING and vanished is None
    return not was_seen and attempt is None and (is_creating or was_watched_from_creation)


def _ready_span(
    node: Node,
    times: NodeTimes | None,
    attempt: AttemptRecord | None,
    now: datetime,
    vanished: datetime | None,
) -> Span | None:
    start = _ready_start(node, times, attempt, now)
    end = _ready_end(node, times, attempt, now, vanished)
    if start is None or end is None:
        return None
    return Span(start[0], end[0], start[1] or end[1])


def _ready_start(
    node: Node, times: NodeTimes | None, attempt: AttemptRecord | None, now: datetime
) -> tuple[datetime, bool] | None:
    """Return when the node became READY, and whether it may have been so before."""
    started = attempt.started if attempt else None
    if times and times.ready_since and times.ready_since > times.first_seen:
        is_second_life = started is not None and times.ready_since - started > USUAL_CREATION
        return (times.ready_since, is_second_life)
    created = node.create_time
    if started is not None:
        return (started, created is not None and started - created > USUAL_CREATION)
    seen = times.ready_since if times else None
    if created is None:
        return (seen, True) if seen else None
    first_heard = times.first_seen if times else now
    return (created, first_heard - created > USUAL_CREATION)


def _ready_end(
    node: Node,
    times: NodeTimes | None,
    attempt: AttemptRecord | None,
    now: datetime,
    vanished: datetime | None,
) -> tuple[datetime, bool] | None:
    """Return when the node was READY last, and whether it may have been so for longer."""
    if vanished is None and node.is_billing:
        return (now, False)
    if times and times.ready_until:
        return (times.ready_until, False)
    if vanished is not None and node.is_billing:
        return (vanished, False)
    if attempt is None:
        return None
    is_exact = attempt.ended is not None and attempt.state == AttemptState.PREEMPTED
    return (attempt.ended or attempt.updated, not is_exact)


def _was_free(node: Node, span: Span) -> bool:
    """Whether the node was preempted so soon after its creation that nothing is charged."""
    if node.state != NodeState.PREEMPTED or not node.scheduling.may_be_preempted:
        return False
    if span.is_lower_bound:
        return False
    return span.end - (node.create_time or span.start) <= FREE_PREEMPTION
