"""What a run will cost by the end, and what the steps cost that it has to do again.

Everything here rests on the speed that was seen, so without a speed there is no figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tpudash.cost.estimate import hourly_rate

if TYPE_CHECKING:
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import AttemptRecord, Run


@dataclass(frozen=True, slots=True)
class Projection:
    """What is still to come if a run goes on as fast as now and is not interrupted.

    Attributes:
        total_usd: What it has cost and what the rest will cost.
        is_lower_bound: Whether a part of what it has cost is not known.
    """

    remaining_steps: int
    remaining: timedelta
    remaining_usd: float
    total_usd: float | None
    is_lower_bound: bool = False


def observed_speed(run: Run) -> float | None:
    """Return steps per second over the newest attempt that made progress, start-up included.

    It is slower than the speed between two steps; where step events are at hand, prefer
    `TrainingCurve.steps_per_second`.
    """
    for record in sorted(run.attempts, key=lambda record: record.attempt, reverse=True):
        speed = _speed_of(record)
        if speed is not None:
            return speed
    return None


def projected_total(
    run: Run,
    cost: CostEstimate,
    book: PriceBook,
    *,
    steps_per_second: float | None = None,
) -> Projection | None:
    """Return what a run will have cost at its target step.

    Args:
        run: The run with the records of its attempts.
        cost: What it has cost so far.
        book: The prices to use.
        steps_per_second: Its present speed; by default what its attempts show on the whole.

    Returns:
        None where the target, the step, the speed or the price is not known.
    """
    target = run.target_step or (run.spec.target_step if run.spec else None)
    speed = steps_per_second or observed_speed(run)
    rate = _rate_of(run, book)
    if target is None or run.step is None or not speed or rate is None:
        return None
    steps = max(0, target - run.step)
    rest = rate * steps / speed / 3600
    return Projection(
        remaining_steps=steps,
        remaining=timedelta(seconds=steps / speed),
        remaining_usd=rest,
        total_usd=None if cost.accrued_usd is None else cost.accrued_usd + rest,
        is_lower_bound=cost.is_lower_bound,
    )


def cost_of_steps(
    run: Run, steps: int | None, book: PriceBook, *, steps_per_second: float | None = None
) -> float | None:
    """Return US dollars for doing that many steps (again) on the run's type of node.

    Returns:
        None where the number, the speed or the price is not known; 0.0 for no steps.
    """
    if steps == 0:
        return 0.0
    speed = steps_per_second or observed_speed(run)
    rate = _rate_of(run, book)
    if steps is None or not speed or rate is None:
        return None
    return rate * steps / speed / 3600


def _rate_of(run: Run, book: PriceBook) -> float | None:
    spec = run.spec
    if spec is None:
        return None
    return hourly_rate(spec.accelerator_type, spec.zone, spec.scheduling, book)


def _speed_of(record: AttemptRecord) -> float | None:
    seconds = ((record.ended or record.updated) - record.started).total_seconds()
    if record.step is None or record.restored_step is None or seconds <= 0:
        return None
    steps = record.step - record.restored_step
    return steps / seconds if steps > 0 else None
