"""Where the money went: by day and month, by owner, what was wasted, and what else it could cost.

Days and months are those of UTC.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tpudash.cost.estimate import combine
from tpudash.cost.lives import usd_between
from tpudash.domain.node import Scheduling
from tpudash.domain.run import AttemptState, RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import AttemptRecord, Run

OVER: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})


@dataclass(frozen=True, slots=True)
class Amount:
    """US dollars, or None where nothing is known; and whether it is at least that much."""

    usd: float | None = 0.0
    is_lower_bound: bool = False


@dataclass(frozen=True, slots=True)
class Waste:
    """What was paid for and brought nothing. Each is None where it is not known.

    Attributes:
        idle_usd: READY nodes after their run was over, and READY nodes without any run.
        lost_usd: Steps that were trained and had to be trained again after a preemption.
        failed_usd: Attempts that failed, from their last checkpoint on.
        is_lower_bound: Whether a part of it is not known.
    """

    idle_usd: float | None = 0.0
    lost_usd: float | None = 0.0
    failed_usd: float | None = 0.0
    is_lower_bound: bool = False

    @property
    def total_usd(self) -> float | None:
        """All of it, as far as it is known."""
        known = [one for one in (self.idle_usd, self.lost_usd, self.failed_usd) if one is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a run has cost, beside what the same training would cost on the other scheduling.

    Attributes:
        actual_usd: What it has cost so far, observed preemptions and what they lost included.
        on_demand_usd: The same on demand: without what preemptions lost, at the price of that.
        spot_usd: What it cost, if it ran on spot; else the same hours at the price of spot, without
            a preemption, which is the least it could have been.
        preemptions: How often it was preempted.
        spot_is_lower_bound: Whether the spot figure has no preemptions in it.
    """

    actual_usd: float | None
    on_demand_usd: float | None
    spot_usd: float | None
    preemptions: int
    spot_is_lower_bound: bool = False


def start_of_day(now: datetime) -> datetime:
    """Return the beginning of the day in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def start_of_month(now: datetime) -> datetime:
    """Return the beginning of the month in UTC."""
    return start_of_day(now).replace(day=1)


def cost_between(lives: Iterable[Life], start: datetime, end: datetime) -> Amount:
    """Return what lives cost between two times; what is not known makes it "at least"."""
    known: list[float] = []
    is_partial, number = False, 0
    for life in lives:
        number += 1
        usd, is_lower_bound = life.within(start, end)
        is_partial = is_partial or is_lower_bound or usd is None
        if usd is not None:
            known.append(usd)
    return Amount(sum(known) if known or not number else None, is_partial)


def cost_by_owner(lives: Iterable[Life]) -> Mapping[str | None, CostEstimate]:
    """Return what each owner's nodes cost now and have cost; None are those without an owner."""
    found: defaultdict[str | None, list[CostEstimate]] = defaultdict(list)
    for life in lives:
        found[life.owner].append(life.estimate)
    return {owner: combine(parts) for owner, parts in sorted(found.items(), key=_by_name)}


def _by_name(item: tuple[str | None, object]) -> str:
    return item[0] or "\uffff"


def waste_of(run: Run | None, lives: Iterable[Life], now: datetime) -> Waste:
    """Return what a run's lives wasted, or with None what nodes without any run did.

    A failed attempt is wasted from its last checkpoint on, whole if it saved none; nothing counts
    twice.
    """
    idle: list[float | None] = []
    lost: list[float | None] = []
    failed: list[float | None] = []
    own = tuple(lives)
    for life in own:
        idle.append(_idle_usd(run, life, now))
        if life.attempt is not None:
            failed.append(_failed_usd(life, life.attempt))
    if run is not None:
        lost = [_lost_usd(run, record, lives_by_attempt(own)) for record in run.attempts]
    parts = (idle, lost, failed)
    return Waste(
        idle_usd=_sum(idle),
        lost_usd=_sum(lost),
        failed_usd=_sum(failed),
        is_lower_bound=any(None in part for part in parts)
        or any(usd and life.ready.is_lower_bound for usd, life in zip(idle, own, strict=True)),
    )


def total_waste(wastes: Iterable[Waste]) -> Waste:
    """Add up what several runs, and what belongs to none, wasted."""
    found = tuple(wastes)
    return Waste(
        idle_usd=_sum(waste.idle_usd for waste in found),
        lost_usd=_sum(waste.lost_usd for waste in found),
        failed_usd=_sum(waste.failed_usd for waste in found),
        is_lower_bound=any(waste.is_lower_bound for waste in found),
    )


def lives_by_attempt(lives: Iterable[Life]) -> dict[int, Life]:
    """Return the life of each attempt whose record is known."""
    return {life.attempt.attempt: life for life in lives if life.attempt is not None}


def _sum(parts: Iterable[float | None]) -> float | None:
    found = tuple(parts)
    known = [part for part in found if part is not None]
    return sum(known) if known or not found else None


def _idle_usd(run: Run | None, life: Life, now: datetime) -> float | None:
    """Return what a node cost after its run had no more use for it."""
    if life.ready.is_free:
        return 0.0
    if not life.ready.spans:
        # Of a node without a run, time that nobody saw was wasted too: how much is not known.
        return None if run is None and life.run is None and life.ready.is_lower_bound else 0.0
    since = _idle_since(run, life)
    if since is None:
        return 0.0
    usd, _ = life.within(since, now)
    return usd


def _idle_since(run: Run | None, life: Life) -> datetime | None:
    """Return from when on a node was READY for nothing, or None if it was in use to the end."""
    if run is None:
        return life.ready.spans[0].start if life.run is None else None
    record = life.attempt
    if record is None:
        return None
    moved_on = any(other.attempt > record.attempt for other in run.attempts)
    if record.ended is not None and (run.state in OVER or moved_on):
        return record.ended
    return record.updated if moved_on else None


def _failed_usd(life: Life, record: AttemptRecord) -> float | None:
    """Return what a failed attempt cost beyond what it saved."""
    if record.state != AttemptState.FAILED:
        return 0.0
    usd, _ = life.within(record.started, record.ended or record.updated)
    done, saved = steps_done(record), _steps_saved(record)
    if usd is None or not done or not saved:
        return usd
    return usd * (1 - min(1.0, saved / done))


def steps_done(record: AttemptRecord) -> int:
    """Return how many steps an attempt trained, those that were lost again included."""
    if record.step is None:
        return 0
    return max(0, record.step - (record.restored_step or 0))


def _steps_saved(record: AttemptRecord) -> int:
    if record.checkpoint_step is None:
        return 0
    return max(0, record.checkpoint_step - (record.restored_step or 0))


def _lost_usd(run: Run, record: AttemptRecord, lives: Mapping[int, Life]) -> float | None:
    """Return what the steps cost that were lost before an attempt began.

    They were trained by the attempt before, at its rate and speed. What a failed attempt lost is
    counted with that.
    """
    if not record.steps_lost:
        return 0.0
    earlier = [one for one in run.attempts if one.attempt < record.attempt]
    before = max(earlier, key=lambda one: one.attempt, default=None)
    if before is not None and before.state == AttemptState.FAILED:
        return 0.0
    life = lives.get(before.attempt) if before is not None else None
    if before is None or life is None:
        return None
    per_step = usd_per_step(life, before)
    return None if per_step is None else per_step * record.steps_lost


def usd_per_step(life: Life, record: AttemptRecord) -> float | None:
    """Return what one step of an attempt cost, start-up included, or None if it did none."""
    done = steps_done(record)
    usd, _ = life.within(record.started, record.ended or record.updated)
    return usd / done if usd is not None and done else None


def usd_per_1000_steps(run: Run, lives: Iterable[Life]) -> Amount:
    """Return what 1,000 steps of progress have cost a run, everything that it wasted included."""
    cost = combine(life.estimate for life in lives)
    if cost.accrued_usd is None or not run.step:
        return Amount(None, is_lower_bound=True)
    return Amount(cost.accrued_usd / run.step * 1000, cost.is_lower_bound)


def compare_scheduling(run: Run, lives: Iterable[Life], book: PriceBook) -> Comparison:
    """Return what a run has cost, and what the same progress costs on the other scheduling."""
    own = tuple(lives)
    actual = combine(life.estimate for life in own).accrued_usd
    preemptions = sum(
        life.attempt is not None and life.attempt.state == AttemptState.PREEMPTED for life in own
    )
    on_spot = all(life.scheduling is not None and life.scheduling.may_be_preempted for life in own)
    spot = actual if on_spot else _at_price_of(own, book, Scheduling.SPOT, {})
    kept = _kept_shares(run, own)
    return Comparison(
        actual_usd=actual,
        on_demand_usd=_at_price_of(own, book, Scheduling.ON_DEMAND, kept),
        spot_usd=spot,
        preemptions=preemptions,
        spot_is_lower_bound=not on_spot,
    )


def _kept_shares(run: Run, lives: Iterable[Life]) -> dict[str, float]:
    """Return by node name which share of its steps was not lost to the preemption that ended it."""
    lost_before = {record.attempt - 1: record.steps_lost or 0 for record in run.attempts}
    shares = {}
    for life in lives:
        record = life.attempt
        if record is None or record.state != AttemptState.PREEMPTED:
            continue
        done = steps_done(record)
        if done:
            lost = min(done, lost_before.get(record.attempt, 0))
            shares[life.name] = 1 - lost / done
    return shares


def _at_price_of(
    lives: Iterable[Life], book: PriceBook, scheduling: Scheduling, shares: Mapping[str, float]
) -> float | None:
    total = 0.0
    for life in lives:
        price = book.price_for(life.accelerator_type, life.zone, scheduling)
        if not life.ready.is_known:
            return None
        # What is free on spot, since it was preempted at once, would have been paid for.
        for span in life.ready.spans:
            usd = usd_between(life.accelerator_type, price, span.start, span.end)
            if usd is None:
                return None
            total += usd * shares.get(life.name, 1.0)
    return total
