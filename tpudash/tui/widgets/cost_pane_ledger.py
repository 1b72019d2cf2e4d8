"""What the cost pane shows: one line for each run, each node, and each life that is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpudash.cost.estimate import combine
from tpudash.cost.lives import lives_of
from tpudash.cost.report import Amount, cost_between, start_of_day, start_of_month

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import Run
    from tpudash.store.snapshot import Snapshot

NO_RUN = "(no run)"
EARLIER = "(earlier)"
"""Lives that this machine remembers of runs that are no longer known."""


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
    today: Amount
    month: Amount


class Ledger:
    """All lines, those that cost most now first, and their sum.

    Only runs of which something changed are worked out anew.

    Attributes:
        total: Everything together, at `as_of`.
        today: What of it belongs to this day, in UTC, when it was last worked out.
        month: What of it belongs to this month.
        billed: How many nodes are billed now.
        rate_is_partial: Whether the rate of a part is unknown.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._book: PriceBook | None = None
        self.lines: tuple[LedgerLine, ...] = ()
        self.total = combine(())
        self.today = Amount()
        self.month = Amount()
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
        names = _names(snapshot)
        stale = names if runs is None or book is not self._book else names & (runs | {EARLIER})
        self._book = book
        kept = {name: group for name, group in self._groups.items() if name in names}
        stale |= names - kept.keys()
        lives: dict[str, list[Life]] = {name: [] for name in stale}
        for life in lives_of(_part_of(snapshot, stale), book, now):
            name = life.run or ""
            lives[name if name in names else EARLIER].append(life)
        for name in stale:
            kept[name] = _group(name, lives[name], snapshot, now)
        self._groups = kept
        groups = sorted(
            kept.values(),
            key=lambda group: (-(group.head.cost.per_hour_usd or 0.0), group.head.name),
        )
        self.lines = tuple(line for group in groups for line in (group.head, *group.children))
        heads = [group.head for group in groups]
        self.total = combine(replace(head.cost, accrued_usd=head.accrued_at(now)) for head in heads)
        self.today = _sum(group.today for group in groups)
        self.month = _sum(group.month for group in groups)
        self.as_of = now
        self.billed = sum(node.is_billing for node in snapshot.nodes.values())
        self.rate_is_partial = any(head.rate_is_partial for head in heads)

    def accrued_at(self, now: datetime) -> float | None:
        """Return what everything has cost so far."""
        return grown(self.total, self.as_of or now, now)


def _sum(amounts: Iterable[Amount]) -> Amount:
    found = tuple(amounts)
    known = [one.usd for one in found if one.usd is not None]
    is_partial = any(one.is_lower_bound for one in found) or len(known) < len(found)
    return Amount(sum(known) if known or not found else None, is_partial)


def _names(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of all groups: runs that are known, "" for none, and what is long over."""
    stones = (stone.node for stone in snapshot.tombstones.values())
    names = {*snapshot.runs, *((node.run or "") for node in (*snapshot.nodes.values(), *stones))}
    known = {*snapshot.nodes, *snapshot.tombstones}
    if any(life.run not in names and life.name not in known for life in snapshot.lives):
        names.add(EARLIER)
    return frozenset(names)


def _part_of(snapshot: Snapshot, names: frozenset[str]) -> Snapshot:
    """Return a snapshot with no more in it than what bears on some groups."""
    every = _names(snapshot)

    def belongs(run: str | None) -> bool:
        name = run or ""
        return (name if name in every else EARLIER) in names

    return replace(
        snapshot,
        nodes={name: node for name, node in snapshot.nodes.items() if belongs(node.run)},
        tombstones={
            name: stone
            for name, stone in snapshot.tombstones.items()
            if belongs(stone.node.run) and name not in snapshot.nodes
        },
        runs={name: run for name, run in snapshot.runs.items() if name in names},
        lives=tuple(life for life in snapshot.lives if belongs(life.run)),
    )


def _group(name: str, lives: Iterable[Life], snapshot: Snapshot, now: datetime) -> _Group:
    run = snapshot.runs.get(name)
    own = sorted(lives, key=_newest_first)
    children = [] if name == EARLIER else [_line(life, now) for life in own]
    cost = combine(life.estimate for life in own)
    return _Group(
        _head_line(name, run, cost, children, now),
        tuple(children),
        cost_between(own, start_of_day(now), now),
        cost_between(own, start_of_month(now), now),
    )


def _newest_first(life: Life) -> tuple[int, str]:
    number = life.node.attempt if life.node else life.attempt.attempt if life.attempt else 0
    return -(number or 0), life.name


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


def _line(life: Life, now: datetime) -> LedgerLine:
    scheduling = f" {life.scheduling}" if life.scheduling else ""
    is_node = life.node is not None
    attempt = life.attempt.attempt if life.attempt else life.name
    return LedgerLine(
        key=f"node:{life.name}" if is_node else f"life:{life.run}/{attempt}",
        name=life.node.node_id if life.node else life.name.rsplit("/", 1)[-1],
        state=life.node.state if life.node and life.is_listed else "GONE",
        kind=f"{life.accelerator_type}{scheduling}",
        cost=life.estimate,
        as_of=now,
    )
