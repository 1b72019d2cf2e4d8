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
        is_head: Whether it sums up the lines below it.
        rate_is_partial: Whether the rate of a part is unknown, so that it is "at least" this.
        cap: What the run may cost at most, in US dollars, if its owner said so.
    """

    key: str
    name: str
    state: str
    kind: str
    cost: CostEstimate
    is_head: bool = False
    rate_is_partial: bool = False
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """All lines, those that cost most now first, and their sum.

    Attributes:
        billed: How many nodes are billed now.
    """

    lines: tuple[LedgerLine, ...]
    total: CostEstimate
    billed: int
    rate_is_partial: bool


@dataclass(frozen=True, slots=True)
class _Group:
    head: LedgerLine
    children: tuple[LedgerLine, ...]


def make_ledger(snapshot: Snapshot, book: PriceBook, now: datetime) -> Ledger:
    """Return what everything costs now and has cost so far."""
    nodes = [
        *snapshot.nodes.values(),
        *(stone.node for name, stone in snapshot.tombstones.items() if name not in snapshot.nodes),
    ]
    by_run: dict[str, list[Node]] = {}
    for node in nodes:
        by_run.setdefault(node.run or "", []).append(node)
    names = {*snapshot.runs, *by_run}
    groups = [_group(name, by_run.get(name, []), snapshot, book, now) for name in names]
    groups.sort(key=lambda group: (-(group.head.cost.per_hour_usd or 0.0), group.head.name))
    lines = tuple(line for group in groups for line in (group.head, *group.children))
    return Ledger(
        lines=lines,
        total=combine(group.head.cost for group in groups),
        billed=sum(node.is_billing for node in snapshot.nodes.values()),
        rate_is_partial=any(line.rate_is_partial for line in lines),
    )


def _group(
    name: str, nodes: Iterable[Node], snapshot: Snapshot, book: PriceBook, now: datetime
) -> _Group:
    run = snapshot.runs.get(name)
    vanished = {
        full: stone.vanished
        for full, stone in snapshot.tombstones.items()
        if full not in snapshot.nodes
    }
    own = sorted(nodes, key=lambda node: (-(node.attempt or 0), node.name))
    records = {record.attempt: record for record in run.attempts} if run else {}
    children = [_node_line(node, records, snapshot, vanished, book, now) for node in own]
    on_nodes = {node.attempt for node in own}
    children += [
        _life_line(record, run, book, now)
        for number, record in sorted(records.items(), reverse=True)
        if run is not None and number not in on_nodes
    ]
    cost = (
        run_cost(run, own, snapshot.times, book, now, vanished=vanished)
        if run is not None
        else combine(child.cost for child in children)
    )
    return _Group(_head_line(name, run, cost, children), tuple(children))


def _head_line(
    name: str, run: Run | None, cost: CostEstimate, children: list[LedgerLine]
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
        is_head=True,
        rate_is_partial=any(child.cost.per_hour_usd is None for child in children),
        cap=spec.max_cost_usd if spec else None,
    )


def _node_line(
    node: Node,
    records: Mapping[int, AttemptRecord],
    snapshot: Snapshot,
    vanished: Mapping[str, datetime],
    book: PriceBook,
    now: datetime,
) -> LedgerLine:
    gone = vanished.get(node.name)
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
    )


def _life_line(record: AttemptRecord, run: Run, book: PriceBook, now: datetime) -> LedgerLine:
    scheduling = f" {run.spec.scheduling}" if run.spec else ""
    return LedgerLine(
        key=f"life:{run.name}/{record.attempt}",
        name=record.node,
        state="GONE",
        kind=f"{record.accelerator_type}{scheduling}",
        cost=attempt_cost(record, run, book, now),
    )
