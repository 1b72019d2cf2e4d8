"""What nodes, runs and the project cost: chips x dated price x the time of being READY.

Charges run while a node is READY, and a preemption within a minute of the node's creation is
free. Source: https://cloud.google.com/tpu/pricing, https://cloud.google.com/tpu/docs/preemptible
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.cost.lives import (
    UNCHARGED_STATES,
    all_nodes,
    attempt_on,
    life_of_attempt,
    life_of_node,
    lives_of,
    newest_lives,
    rate_now,
    rate_of,
    times_of,
)
from tpudash.cost.ready_time import FREE_PREEMPTION, USUAL_CREATION, Evidence
from tpudash.domain.life import ReadySpan
from tpudash.domain.price import CostEstimate
from tpudash.store.snapshot import NODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.life import NodeLife
    from tpudash.domain.node import Node, Scheduling
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import NodeTimes, Snapshot

__all__ = [
    "FREE_PREEMPTION",
    "NOTHING",
    "UNCHARGED_STATES",
    "USUAL_CREATION",
    "ProjectTotals",
    "Span",
    "attempt_cost",
    "attempt_on",
    "combine",
    "hourly_rate",
    "node_cost",
    "node_costs",
    "project_totals",
    "rate_now",
    "run_cost",
    "run_cost_in",
]

Span = ReadySpan
NOTHING: Final = CostEstimate(per_hour_usd=0.0, accrued_usd=0.0)


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
    return rate_of(accelerator_type, book.price_for(accelerator_type, zone, scheduling))


def node_cost(
    node: Node,
    times: NodeTimes | None,
    attempt: AttemptRecord | None,
    book: PriceBook,
    now: datetime,
    *,
    vanished: datetime | None = None,
    life: NodeLife | None = None,
) -> CostEstimate:
    """Return what a node costs now, and what it has cost so far.

    Args:
        node: The node as it was last listed.
        times: What was watched of the node's life, or None.
        attempt: The record of the attempt that ran on it, or None.
        book: The prices to use.
        now: Until when a READY node is charged for.
        vanished: When the node was first found to be no longer listed, if that is so.
        life: What earlier sessions saw of it, or None.
    """
    return life_of_node(Evidence(node, times, attempt, now, vanished, life), book).estimate


def run_cost(
    run: Run,
    nodes: Iterable[Node],
    times: Mapping[str, NodeTimes],
    book: PriceBook,
    now: datetime,
    *,
    vanished: Mapping[str, datetime] | None = None,
    lives: Mapping[str, NodeLife] | None = None,
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
        lives: What earlier sessions saw, by full name.
    """
    gone, remembered = vanished or {}, lives or {}
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
            life=remembered.get(node.name),
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
    """Return what an attempt has cost whose node is no longer known: nothing now."""
    return life_of_attempt(record, run, book, now).estimate


def node_costs(snapshot: Snapshot, book: PriceBook, now: datetime) -> dict[str, CostEstimate]:
    """Return the cost of every listed and every vanished node, by full name."""
    gone = {name: stone.vanished for name, stone in snapshot.tombstones.items()}
    times, lives = times_of(snapshot), newest_lives(snapshot)
    return {
        node.name: node_cost(
            node,
            times.get(node.name),
            attempt_on(node, snapshot),
            book,
            now,
            vanished=gone.get(node.name),
            life=_own_life(lives.get(node.name), node),
        )
        for node in all_nodes(snapshot)
    }


def _own_life(life: NodeLife | None, node: Node) -> NodeLife | None:
    """Return a remembered life unless it is that of another node which had this name before."""
    if life is None or None in {life.create_time, node.create_time}:
        return life
    return life if life.create_time == node.create_time else None


def run_cost_in(snapshot: Snapshot, run: Run, book: PriceBook, now: datetime) -> CostEstimate:
    """Return what a run costs and has cost, by everything that a snapshot knows."""
    return combine(life.estimate for life in lives_of(snapshot, book, now) if life.run == run.name)


def project_totals(snapshot: Snapshot, book: PriceBook, now: datetime) -> ProjectTotals:
    """Return what all nodes and runs that are known cost together, each life counted once."""
    lives = lives_of(snapshot, book, now)
    accrued = combine(life.estimate for life in lives)
    if _nothing_heard(snapshot):
        so_far = accrued.accrued_usd if lives else None
        return ProjectTotals(
            None, so_far, per_hour_is_lower_bound=True, accrued_is_lower_bound=True
        )
    listed = [life for life in lives if life.is_listed]
    rates = [life.per_hour_usd for life in listed if life.per_hour_usd is not None]
    unpriced = tuple(sorted(life.name for life in listed if life.per_hour_usd is None))
    return ProjectTotals(
        per_hour_usd=sum(rates) if rates or not listed else None,
        accrued_usd=accrued.accrued_usd,
        per_hour_is_lower_bound=bool(unpriced or snapshot.unreachable),
        accrued_is_lower_bound=accrued.is_lower_bound or bool(snapshot.unreachable),
        billing_nodes=sum(node.is_billing for node in snapshot.nodes.values()),
        unpriced=unpriced,
        uses_example_prices=any(life.price and life.price.is_example for life in listed),
    )


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
