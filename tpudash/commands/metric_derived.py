"""What follows from the figures, as items of `tpudash metrics`: idle, slow workers, pace, MFU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.commands.output import Item, timestamp
from tpudash.cost.estimate import hourly_rate
from tpudash.domain.metric import NoValue
from tpudash.domain.node import NodeState
from tpudash.store.derived import idle, last_busy, pace, stragglers

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Node
    from tpudash.store.training_curve import TrainingCurve
    from tpudash.store.utilization import NodeUtilization

DERIVED: Final = "derived"


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What is known of the run on a node.

    Attributes:
        curve: Its `step` events within the time that was asked for.
        last_step: Its newest `step` event, however long ago, or None.
        flops_per_example: FLOPs that training takes for one example, or None.
    """

    curve: TrainingCurve
    last_step: datetime | None
    flops_per_example: float | None


def derived_items(
    node: Node, found: NodeUtilization, run: RunFigures | None, book: PriceBook, now: datetime
) -> list[Item]:
    """Return what follows for a node and the run on it; null where that can't be told."""
    figures = [*_idle(node, found, run, book, now)]
    if run is not None:
        figures += _of_run(node, run)
    items = [_item(node, None, *figure, now) for figure in figures]
    items += [
        _item(node, worker, "share_of_median_worker", "1", share, now)
        for worker, share in sorted(stragglers(found).items())
    ]
    return items


def _idle(
    node: Node, found: NodeUtilization, run: RunFigures | None, book: PriceBook, now: datetime
) -> list[tuple[str, str, float | None]]:
    moments = (run.last_step if run else None, last_busy(found))
    worked = [moment for moment in moments if moment is not None]
    rate = hourly_rate(node.accelerator_type, node.zone, node.scheduling, book)
    idles = idle(node, None, max(worked, default=None), rate, now)
    if idles is not None:
        seconds, wasted = (now - idles.since).total_seconds(), idles.wasted_usd
        return [("idle_s", "s", seconds), ("idle_wasted_usd", "USD", wasted)]
    nothing = 0.0 if node.state == NodeState.READY else None
    return [("idle_s", "s", nothing), ("idle_wasted_usd", "USD", nothing)]


def _of_run(node: Node, run: RunFigures) -> list[tuple[str, str, float | None]]:
    rates = [point.value for point in run.curve.history("examples_per_second")]
    found = pace(rates, run.flops_per_example, node.accelerator_type)
    now, best, share, utilization = (
        (found.now, found.best, found.share_of_best, found.model_flops_utilization)
        if found
        else (None, None, None, None)
    )
    return [
        ("mean_input_wait_fraction", "1", run.curve.mean("input_wait_fraction")),
        ("median_examples_per_second", "{examples}/s", now),
        ("best_examples_per_second", "{examples}/s", best),
        ("share_of_best_pace", "1", share),
        ("model_flops_utilization", "1", utilization),
    ]


def _item(
    node: Node, worker: str | None, measure: str, unit: str, value: float | None, now: datetime
) -> Item:
    is_known = value is not None
    return {
        "metric": f"{DERIVED}/{measure}",
        "measure": measure,
        "node": node.name,
        "run": node.run,
        "worker": worker,
        "unit": unit,
        "value": value,
        "reason": None if is_known else str(NoValue.NO_DATA),
        "time": timestamp(now) if is_known else None,
        "age_s": 0.0 if is_known else None,
        "points": [{"time": timestamp(now), "value": value}] if is_known else [],
    }
