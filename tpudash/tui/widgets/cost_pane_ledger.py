"""What the cost pane shows: one line for each run, each node, and each life that is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tpudash.cost.estimate import combine
from tpudash.cost.lives import lives_of
from tpudash.cost.report import (
    Amount,
    Waste,
    cost_between,
    start_of_day,
    start_of_month,
    total_waste,
)
from tpudash.cost.run_money import money_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.cost.run_money import RunMoney
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import Run
    from tpudash.store.snapshot import Snapshot

NO_RUN = "(no run)"
NO_OWNER = "(no owner)"
EARLIER = "(earlier)"
"""Lives that this machine remembers of runs that are no longer known."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One row.

    Attributes:
        key: Unique and stable: `run:NAME`, `node:FULL NAME`, `life:RUN/ATTEMPT`, `owner:NAME`.
        name: Run name, node id, or the node id of a life that is over.
        state: The state's own word, or `GONE` for what is no longer listed.
        kind: Accelerator type and scheduling.
        cost: What it cost at `as_of`.
        is_head: Whether it sums up the lines below it.
        rate_is_partial: Whether the rate of a part is unknown, so that it is "at least" this.
        cap: What the run may cost at most, in US dollars, if its owner said so.
        lives: What it is made up of.
        waste: What of it was wasted, where that is known of a row.
        today: What of it belonged to this day at `as_of`, where that was worked out already.
        month: What of it belonged to this month.
        money: Everything that is said about the money of a run; None for other rows.
        owner: Whose it is, or None.
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
    lives: tuple[Life, ...] = ()
    waste: Waste | None = None
    today: Amount | None = None
    month: Amount | None = None
    money: RunMoney | None = None
    owner: str | None = None

    @property
    def is_one_life(self) -> bool:
        """Whether it is a node or a life that is over, which has one price or none."""
        return self.key.startswith(("node:", "life:"))

    def today_at(self, now: datetime) -> Amount:
        """Return what of it belongs to this day, in UTC."""
        return self._part(self.today, start_of_day(now), now)

    def month_at(self, now: datetime) -> Amount:
        """Return what of it belongs to this month, in UTC."""
        return self._part(self.month, start_of_month(now), now)

    def _part(self, known: Amount | None, start: datetime, now: datetime) -> Amount:
        if known is None:
            known = cost_between(self.lives, start, self.as_of)
        return grown_amount(known, self.cost.per_hour_usd, self.as_of, start, now)

    def accrued_at(self, now: datetime) -> float | None:
        """Return what it has cost so far: while nothing changes, costs grow by the rate."""
        return grown(self.cost, self.as_of, now)


def grown(cost: CostEstimate, as_of: datetime, now: datetime) -> float | None:
    """Return the accrued dollars of an estimate at a later time, or None if not known."""
    if cost.accrued_usd is None:
        return None
    hours = max(0.0, (now - as_of).total_seconds()) / 3600
    return cost.accrued_usd + (cost.per_hour_usd or 0.0) * hours


def grown_amount(
    amount: Amount, per_hour_usd: float | None, as_of: datetime, start: datetime, now: datetime
) -> Amount:
    """Return an amount of a period that goes on: what was counted until `as_of`, and the rest.

    Where the period began after that, only what came since its beginning counts.
    """
    if amount.usd is None:
        return amount
    hours = max(0.0, (now - max(as_of, start)).total_seconds()) / 3600
    before = amount.usd if as_of >= start else 0.0
    return Amount(before + (per_hour_usd or 0.0) * hours, amount.is_lower_bound)


@dataclass(frozen=True, slots=True)
class _Group:
    head: LedgerLine
    children: tuple[LedgerLine, ...]
    money: RunMoney

    @property
    def wastes(self) -> bool:
        """Whether it costs money now for nothing, so that its waste grows while nothing changes."""
        return bool(self.money.waste.idle_usd) and bool(self.money.cost.per_hour_usd)


class Ledger:
    """All lines, those that cost most now first, and their sum.

    Only runs of which something changed are worked out anew.

    Attributes:
        total: Everything together, at `as_of`.
        waste: What of it was wasted, when it was last worked out.
        billed: How many nodes are billed now.
        rate_is_partial: Whether the rate of a part is unknown.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._book: PriceBook | None = None
        self.lines: tuple[LedgerLine, ...] = ()
        self.total = combine(())
        self.waste = Waste()
        self._today = Amount()
        self._month = Amount()
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
            kept[name] = _group(name, lives[name], snapshot, book, now)
        self._groups = kept
        groups = sorted(
            kept.values(),
            key=lambda group: (-(group.head.cost.per_hour_usd or 0.0), group.head.name),
        )
        self.lines = tuple(line for group in groups for line in (group.head, *group.children))
        heads = [group.head for group in groups]
        self.total = combine(replace(head.cost, accrued_usd=head.accrued_at(now)) for head in heads)
        self._today = _sum(group.head.today_at(now) for group in groups)
        self._month = _sum(group.head.month_at(now) for group in groups)
        self.waste = total_waste(group.money.waste for group in groups)
        self.as_of = now
        self.billed = sum(node.is_billing for node in snapshot.nodes.values())
        self.rate_is_partial = any(head.rate_is_partial for head in heads)

    def accrued_at(self, now: datetime) -> float | None:
        """Return what everything has cost so far."""
        return grown(self.total, self.as_of or now, now)

    def today_at(self, now: datetime) -> Amount:
        """Return what of it belongs to this day, in UTC."""
        start = start_of_day(now)
        return grown_amount(self._today, self.total.per_hour_usd, self.as_of or now, start, now)

    def month_at(self, now: datetime) -> Amount:
        """Return what of it belongs to this month, in UTC."""
        start = start_of_month(now)
        return grown_amount(self._month, self.total.per_hour_usd, self.as_of or now, start, now)

    def wasting(self) -> frozenset[str]:
        """Return the groups whose waste grows while nothing changes, as `update` takes them."""
        return frozenset(name for name, group in self._groups.items() if group.wastes)

    def by_owner(self) -> tuple[LedgerLine, ...]:
        """Return a line for each owner, what costs most now first, and their runs below."""
        shares: dict[str, list[LedgerLine]] = {}
        for group in self._groups.values():
            for owner in {life.owner for life in group.head.lives}:
                own = tuple(life for life in group.head.lives if life.owner == owner)
                whole = len(own) == len(group.head.lives)
                line = group.head if whole else _share(group.head, own)
                shares.setdefault(owner or "", []).append(
                    replace(line, key=f"{line.key}@{owner or ''}", is_head=False)
                )
        heads = [_owner_line(owner, lines) for owner, lines in shares.items()]
        heads.sort(key=lambda line: (-(line.cost.per_hour_usd or 0.0), line.name))
        return tuple(
            line
            for head in heads
            for line in (head, *sorted(shares[head.owner or ""], key=lambda one: one.name))
        )


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


def _share(line: LedgerLine, lives: tuple[Life, ...]) -> LedgerLine:
    """Return the line of a run, or of what has no run, for a part of its lives."""
    cost = combine(life.estimate for life in lives)
    partial = any(life.per_hour_usd is None for life in lives)
    return replace(
        line,
        cost=replace(cost, price=None),
        lives=lives,
        rate_is_partial=partial,
        waste=None,
        today=None,
        month=None,
        money=None,
        cap=None,
    )


def _owner_line(owner: str, lines: list[LedgerLine]) -> LedgerLine:
    wastes = [line.waste for line in lines if line.waste is not None]
    as_of = max(line.as_of for line in lines)
    grown_costs = (replace(line.cost, accrued_usd=line.accrued_at(as_of)) for line in lines)
    return LedgerLine(
        key=f"owner:{owner}",
        name=owner or NO_OWNER,
        state="",
        kind="1 run" if len(lines) == 1 else f"{len(lines)} runs",
        cost=replace(combine(grown_costs), price=None),
        as_of=as_of,
        is_head=True,
        rate_is_partial=any(line.rate_is_partial for line in lines),
        lives=tuple(life for line in lines for life in line.lives),
        waste=total_waste(wastes) if len(wastes) == len(lines) else None,
        today=_sum(line.today_at(as_of) for line in lines),
        month=_sum(line.month_at(as_of) for line in lines),
        owner=owner or None,
    )


def _group(
    name: str, lives: Iterable[Life], snapshot: Snapshot, book: PriceBook, now: datetime
) -> _Group:
    run = snapshot.runs.get(name)
    own = sorted(lives, key=_newest_first)
    children = [] if name == EARLIER else [_line(life, now) for life in own]
    money = money_of(run, own, book, now)
    head = _head_line(name, run, money.cost, children, now)
    head = replace(
        head,
        lives=tuple(own),
        waste=money.waste,
        today=money.today,
        month=money.month,
        money=money,
    )
    return _Group(head, tuple(children), money)


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
        lives=(life,),
        owner=life.owner,
    )
