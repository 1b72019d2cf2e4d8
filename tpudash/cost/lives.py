"""Everything that costs: each life of a node once, whatever it is known by, with its price.

A life is known by the node while that is listed, by its tombstone after that, by this machine's
history, or by an attempt's record alone. All sums (of a run, an owner, a day) are sums of lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.cost.ready_time import (
    Evidence,
    ReadyTime,
    ready_time,
    ready_time_of_attempt,
    ready_time_of_life,
)
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import NodeState, Scheduling
from tpudash.domain.price import CostEstimate
from tpudash.domain.resource_name import ResourceName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.life import NodeLife
    from tpudash.domain.node import Node
    from tpudash.domain.price import Price
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import NodeTimes, Snapshot

UNCHARGED_STATES: Final = frozenset(NodeState) - {
    NodeState.READY,
    NodeState.UNKNOWN,
    NodeState.STATE_UNSPECIFIED,
}
"""States that say for sure that nothing is charged for the TPU."""
UNSEEN: Final = timedelta(days=1)
"""How far beyond the last sign of it a node is taken to have lived on unseen, at most."""


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a node, and what it costs.

    Attributes:
        name: Full resource name of the node, or its id alone where only a record is left.
        rate: US dollars an hour while it is READY, or None where no price is known.
        per_hour_usd: What is charged now: 0.0 if nothing, None if that is not known.
        node: The node, if it is listed or has a tombstone.
        is_listed: Whether it is listed now.
        attempt: The record of the attempt that ran on it, if one is known.
    """

    name: str
    run: str | None
    owner: str | None
    accelerator_type: str
    zone: str
    scheduling: Scheduling | None
    ready: ReadyTime
    price: Price | None
    rate: float | None
    per_hour_usd: float | None
    node: Node | None = None
    is_listed: bool = False
    attempt: AttemptRecord | None = None

    @property
    def estimate(self) -> CostEstimate:
        """What it costs now and has cost so far."""
        if not self.ready.is_known:
            return CostEstimate(self.per_hour_usd, None, is_lower_bound=True, price=self.price)
        if self.ready.is_free or not self.ready.spans:
            return CostEstimate(
                self.per_hour_usd, 0.0, is_lower_bound=self.ready.is_lower_bound, price=self.price
            )
        if self.rate is None:
            return CostEstimate(self.per_hour_usd, None, is_lower_bound=True, price=self.price)
        total = sum(self._usd(span.start, span.end) for span in self.ready.spans)
        return CostEstimate(self.per_hour_usd, total, self.ready.is_lower_bound, self.price)

    def within(self, start: datetime, end: datetime) -> tuple[float | None, bool]:
        """Return what it cost between two times, and whether that is a lower bound.

        A part that nobody saw may lie in that time wherever the spans reach into it.
        """
        hours = self.ready.within(start, end)
        if not self.ready.is_known:
            return None, True
        if self.ready.is_free:
            return 0.0, self.ready.is_lower_bound and self._reaches(start, end)
        if self.rate is None:
            return (None, True) if hours else (0.0, False)
        usd = sum(
            self._usd(max(span.start, start), min(span.end, end)) for span in self.ready.spans
        )
        return usd, self.ready.is_lower_bound and self._reaches(start, end)

    def _usd(self, start: datetime, end: datetime) -> float:
        """Return what it costs to be READY from one time to another."""
        return usd_between(self.accelerator_type, self.price, start, end) or 0.0

    def _reaches(self, start: datetime, end: datetime) -> bool:
        """Whether a time that nobody saw may lie between two times."""
        return any(
            (span.begins_late and start < span.start < end)
            or (span.ends_early and span.end < end and start < span.end + UNSEEN)
            for span in self.ready.spans
        )


def lives_of(snapshot: Snapshot, book: PriceBook, now: datetime) -> tuple[Life, ...]:
    """Return every life that is known, each once."""
    gone = {name: stone.vanished for name, stone in snapshot.tombstones.items()}
    times = times_of(snapshot)
    remembered = {(life.name, life.create_time): life for life in snapshot.lives}
    newest = newest_lives(snapshot)
    found = []
    for node in all_nodes(snapshot):
        known = remembered.pop((node.name, node.create_time), None) or _same(newest, node)
        if known is not None:
            remembered.pop((known.name, known.create_time), None)
        given = Evidence(
            node, times.get(node.name), attempt_on(node, snapshot), now, gone.get(node.name), known
        )
        found.append(life_of_node(given, book))
    found += [_life_remembered(life, snapshot, book, now) for life in remembered.values()]
    return (*found, *_lives_by_record(found, snapshot, book, now))


def _same(newest: Mapping[str, NodeLife], node: Node) -> NodeLife | None:
    """Return the life that is this node's although one of them lacks the time of creation."""
    life = newest.get(node.name)
    if life is None or (life.create_time is not None and node.create_time is not None):
        return None
    return life


def life_of_node(given: Evidence, book: PriceBook) -> Life:
    """Return the life of a node that is listed or has a tombstone."""
    node = given.node
    price = book.price_for(node.accelerator_type, node.zone, node.scheduling)
    rate = rate_of(node.accelerator_type, price)
    return Life(
        name=node.name,
        run=node.run,
        owner=node.owner,
        accelerator_type=node.accelerator_type,
        zone=node.zone,
        scheduling=node.scheduling,
        ready=ready_time(given),
        price=price,
        rate=rate,
        per_hour_usd=0.0 if given.vanished is not None else rate_now(node, rate),
        node=node,
        is_listed=given.vanished is None,
        attempt=given.attempt,
    )


def life_of_attempt(record: AttemptRecord, run: Run, book: PriceBook, now: datetime) -> Life:
    """Return the life of a node of which only the attempt's record is left."""
    spec = run.spec
    kind = record.accelerator_type or (spec.accelerator_type if spec else "")
    zone = record.zone or (spec.zone if spec else "")
    scheduling = spec.scheduling if spec else None
    price = book.price_for(kind, zone, scheduling) if scheduling and zone else None
    return Life(
        name=record.node,
        run=run.name,
        owner=run.owner or None,
        accelerator_type=kind,
        zone=zone,
        scheduling=scheduling,
        ready=ready_time_of_attempt(
            record, now, may_be_preempted=scheduling is None or scheduling.may_be_preempted
        ),
        price=price,
        rate=rate_of(kind, price),
        per_hour_usd=0.0,
        attempt=record,
    )


def _life_remembered(life: NodeLife, snapshot: Snapshot, book: PriceBook, now: datetime) -> Life:
    zone = ResourceName.parse(life.name).location
    price = book.price_for(life.accelerator_type, zone, life.scheduling)
    run = snapshot.runs.get(life.run or "")
    records = run.attempts if run else ()
    return Life(
        name=life.name,
        run=life.run,
        owner=life.owner,
        accelerator_type=life.accelerator_type,
        zone=zone,
        scheduling=life.scheduling,
        ready=ready_time_of_life(life, now),
        price=price,
        rate=rate_of(life.accelerator_type, price),
        # Whether it still costs money is the question of the next listing, not of this memory.
        per_hour_usd=0.0,
        attempt=next((one for one in records if one.attempt == life.attempt), None),
    )


def _lives_by_record(
    found: Iterable[Life], snapshot: Snapshot, book: PriceBook, now: datetime
) -> list[Life]:
    """Return the lives of attempts of which no node is known in any other way."""
    known = {(life.run, life.attempt.attempt) for life in found if life.attempt is not None}
    return [
        life_of_attempt(record, run, book, now)
        for run in snapshot.runs.values()
        for record in run.attempts
        if (run.name, record.attempt) not in known
    ]


def rate_of(accelerator_type: str, price: Price | None) -> float | None:
    """Return US dollars an hour of a READY node at a price, or None."""
    kind = load_catalog().find(accelerator_type)
    return kind.chips * price.per_chip_hour_usd if kind and price else None


def usd_between(
    accelerator_type: str, price: Price | None, start: datetime, end: datetime
) -> float | None:
    """Return US dollars of a node READY from one time to another, by the prices of that time."""
    kind = load_catalog().find(accelerator_type)
    return kind.chips * price.chip_usd(start, end) if kind and price else None


def rate_now(node: Node, rate: float | None) -> float | None:
    """Return the part of a node's rate that is charged in its present state.

    It is None, whatever the price, in a state of which nobody knows whether it is charged.
    """
    if node.state in UNCHARGED_STATES:
        return 0.0
    return rate if node.is_billing else None


def attempt_on(node: Node, snapshot: Snapshot) -> AttemptRecord | None:
    """Return the record of the attempt that a node was made for, or None."""
    run = snapshot.runs.get(node.run or "")
    records = run.attempts if run else ()
    return next((record for record in records if record.attempt == node.attempt), None)


def all_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    """Return the nodes that are listed, and those that vanished in this session."""
    vanished = (stone.node for stone in snapshot.tombstones.values())
    return (*snapshot.nodes.values(), *vanished)


def times_of(snapshot: Snapshot) -> dict[str, NodeTimes]:
    """Return what was watched of all nodes, those that vanished included."""
    vanished = {name: stone.times for name, stone in snapshot.tombstones.items() if stone.times}
    return {**vanished, **snapshot.times}


def newest_lives(snapshot: Snapshot) -> dict[str, NodeLife]:
    """Return the newest life of each name that this machine remembers."""
    found: dict[str, NodeLife] = {}
    for life in sorted(snapshot.lives, key=lambda one: one.last_seen):
        found[life.name] = life
    return found
