"""What the cost pane shows: one line for each run, each node, and each life that is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpudash.cost.estimate import attempt_cost, combine, node_cost, run_cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Node
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import AttemptRecord, Run
    from tpudash.store.snapshot import Snapshot

NO_RUN = "(no run)"


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One row.

    Attributes:
        key: Unique and stable: `run:NAME`, `node:FULL NAME`, `life:RUN/ATTEMPT`.
        name: Run name, node id, or the node id of a life that is over.
        state: The state's own word, or `GONE` for what is no longer listed.
        kind: Accelerator type and scheduling.
        cost: What it cost at `as_of`.
        is_head: Whether it sums up the lines below it.
        rate_is_partial: Whether the rate of a part is unknown, so that it is "at least" this.
        cap: What the run may cost at most, in US dollars, if its owner said so.
    """

    key: str
    name: str
    state: str
    kind: str
    cost: CostEstimate
    as_of: datetime
    is_head: bool = False
    rate_is_partial: bool = False
    cap: float | None = None

    def accrued_at(self, now: datetime) -> float | None:
        """Return what it has cost so far: while nothing changes, costs grow by the rate."""
        return grown(self.cost, self.as_of, now)


def grown(cost: CostEstimate, as_of: datetime, now: datetime) -> float | None:
    """Return the accrued dollars of an estimate at a later time, or None if not known."""
    if cost.accrued_usd is None:
        return None
    hours = max(0.0, (now - as_of).total_seconds()) / 3600
    return cost.accrued_usd + (cost.per_hour_usd or 0.0) * hours


@dataclass(frozen=True, slots=True)
class _Group:
    head: LedgerLine
    children: tuple[LedgerLine, ...]


class Ledger:
    """All lines, those that cost most now first, and their sum.

    Only runs of which something changed are worked out anew.

    Attributes:
        total: Everything together, at `as_of`.
        billed: How many nodes are billed now.
        rate_is_partial: Whether the rate of a part is unknown.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._book: PriceBook | None = None
        self.lines: tuple[LedgerLine, ...] = ()
        self.total = combine(())
        self.as_of: datetime | None = None
        self.billed = 0
        self.rate_is_partial = False

    def update(
        self, snapshot: Snapshot, book: PriceBook, now: datetime, runs: frozenset[str] | None
    ) -> None:
        """Work out what changed.

        Args:
            snapshot: What is known.
            book: The prices.
            now: The time up to which costs are counted.
            runs: Names of the runs that changed, "" for nodes without a run; None for all.
        """
        by_run, vanished = _nodes_by_run(snapshot)
        names = {*snapshot.runs, *by_run}
        stale = names if runs is None or book is not self._book else names & runs
        self._book = book
        kept = {name: group for name, group in self._groups.items() if name in names}
        for name in (names - kept.keys()) | stale:
            kept[name] = _group(name, by_run.get(name, ()), snapshot, vanished, book, now)
        self._groups = kept
        groups = sorted(
            kept.values(),
            key=lambda group: (-(group.head.cost.per_hour_usd or 0.0), group.head.name),
        )
        self.lines = tuple(line for group in groups for line in (group.head, *group.children))
        heads = [group.head for group in groups]
        self.total = combine(replace(head.cost, accrued_usd=head.accrued_at(now)) for head in heads)
        self.as_of = now
        self.billed = sum(node.is_billing for node in snapshot.nodes.values())
        self.rate_is_partial = any(head.rate_is_partial for head in heads)

    def accrued_at(self, now: datetime) -> float | None:
        """Return what everything has cost so far."""
        return grown(self.total, self.as_of or now, now)


def _nodes_by_run(
    snapshot: Snapshot,
) -> tuple[dict[str, list[Node]], dict[str, datetime]]:
    """Return all nodes, also vanished ones, by run; and when those vanished, by full name."""
    vanished = {
        name: stone.vanished
        for name, stone in snapshot.tombstones.items()
        if name not in snapshot.nodes
    }
    by_run: dict[str, list[Node]] = {}
    for node in (*snapshot.nodes.values(), *(snapshot.tombstones[name].node for name in vanished)):
        by_run.setdefault(node.run or "", []).append(node)
    return by_run, vanished


def _group(
    name: str,
    nodes: Iterable[Node],
    snapshot: Snapshot,
    vanished: Mapping[str, datetime],
    book: PriceBook,
    now: datetime,
) -> _Group:
    run = snapshot.runs.get(name)
    own = sorted(nodes, key=lambda node: (-(node.attempt or 0), node.name))
    records = {record.attempt: record for record in run.attempts} if run else {}
    children = [
        _node_line(node, records, snapshot, vanished.get(node.name), book, now) for node in own
    ]
    on_nodes = {node.attempt for node in own}
    children += [
        _life_line(record, run, book, now)
        for number, record in sorted(records.items(), reverse=True)
        if run is not None and number not in on_nodes
    ]
    gone = {node.name: vanished[node.name] for node in own if node.name in vanished}
    cost = (
        run_cost(run, own, snapshot.times, book, now, vanished=gone)
        if run is not None
        else combine(child.cost for child in children)
    )
    return _Group(_head_line(name, run, cost, children, now), tuple(children))


def _head_line(
    name: str, run: Run | None, cost: CostEstimate, children: list[LedgerLine], now: datetime
) -> LedgerLine:
    spec = run.spec if run else None
    if spec is not None:
        kind = f"{spec.accelerator_type} {spec.scheduling}"
    else:
        kinds = {child.kind for child in children}
        kind = kinds.pop() if len(kinds) == 1 else ""
    return LedgerLine(
        key=f"run:{name}",
        name=name or NO_RUN,
        state=str(run.state) if run else "",
        kind=kind,
        cost=replace(cost, price=None),
        as_of=now,
        is_head=True,
        rate_is_partial=any(child.cost.per_hour_usd is None for child in children),
        cap=spec.max_cost_usd if spec else None,
    )


def _node_line(
    node: Node,
    records: Mapping[int, AttemptRecord],
    snapshot: Snapshot,
    gone: datetime | None,
    book: PriceBook,
    now: datetime,
) -> LedgerLine:
    times = snapshot.times.get(node.name)
    if times is None and node.name in snapshot.tombstones:
        times = snapshot.tombstones[node.name].times
    cost = node_cost(node, times, records.get(node.attempt or 0), book, now, vanished=gone)
    return LedgerLine(
        key=f"node:{node.name}",
        name=node.node_id,
        state=node.state if gone is None else "GONE",
        kind=f"{node.accelerator_type} {node.scheduling}",
        cost=cost,
        as_of=now,
    )


def _life_line(record: AttemptRecord, run: Run, book: PriceBook, now: datetime) -> LedgerLine:
    scheduling = f" {run.spec.scheduling}" if run.spec else ""
    return LedgerLine(
        key=f"life:{run.name}/{record.attempt}",
        name=record.node,
        state="GONE",
        kind=f"{record.accelerator_type}{scheduling}",
        cost=attempt_cost(record, run, book, now),
        as_of=now,
    )
