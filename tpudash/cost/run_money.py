"""Everything that is said about the money of one run, or of what belongs to no run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.cost.estimate import combine
from tpudash.cost.projection import projected_total
from tpudash.cost.report import (
    Amount,
    compare_scheduling,
    cost_between,
    start_of_day,
    start_of_month,
    usd_per_1000_steps,
    waste_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.cost.projection import Projection
    from tpudash.cost.report import Comparison, Waste
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import Run


@dataclass(frozen=True, slots=True)
class RunMoney:
    """What a run costs, has cost, wasted and will cost.

    Attributes:
        cost: Its rate now and what it has cost so far.
        today: What of it belongs to this day, in UTC.
        month: What of it belongs to this month.
        waste: What was paid for and brought nothing.
        projection: What it will have cost at its target step, where that can be told.
        comparison: The same training on the other scheduling; None without a run.
        per_1000_steps: What 1,000 steps of progress have cost; None without a run.
    """

    cost: CostEstimate
    today: Amount
    month: Amount
    waste: Waste
    projection: Projection | None = None
    comparison: Comparison | None = None
    per_1000_steps: Amount | None = None


def money_of(run: Run | None, lives: Iterable[Life], book: PriceBook, now: datetime) -> RunMoney:
    """Work out the money of a run, or with None that of lives without any run.

    Args:
        run: The run with the records of its attempts.
        lives: Its lives, each once.
        book: The prices to use.
        now: The present.
    """
    own = tuple(lives)
    cost = combine(life.estimate for life in own)
    return RunMoney(
        cost=cost,
        today=cost_between(own, start_of_day(now), now),
        month=cost_between(own, start_of_month(now), now),
        waste=waste_of(run, own, now),
        projection=projected_total(run, cost, book) if run else None,
        comparison=compare_scheduling(run, own, book) if run else None,
        per_1000_steps=usd_per_1000_steps(run, own) if run else None,
    )
