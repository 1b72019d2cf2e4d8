"""The items of `tpudash metrics`: each figure with its age, or the reason why there is none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tpudash.commands.durations import parse_since
from tpudash.commands.facts import read_facts
from tpudash.commands.items import age_s
from tpudash.commands.metric_derived import derived_items
from tpudash.commands.metric_logs import read_run_logs
from tpudash.commands.output import Answer, Item, timestamp
from tpudash.commands.session import known_prices, open_session
from tpudash.commands.target import check_name, need_target
from tpudash.domain.metric import NoValue
from tpudash.errors import NotFoundError, TpudashError
from tpudash.pollers.metrics import METRIC_TYPES, metric_period
from tpudash.store.snapshot import METRICS, SourceStatus
from tpudash.store.training_curve import CURVE_UNITS
from tpudash.store.utilization import METRICS as METRICS_OF_NODES
from tpudash.store.utilization import read_utilization

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.commands.session import Session
    from tpudash.commands.state import CliState
    from tpudash.commands.target import Target
    from tpudash.domain.metric import MetricPoint, MetricSeries
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run
    from tpudash.store.training_curve import TrainingCurve
    from tpudash.store.utilization import Cell, NodeUtilization


async def read_metrics(state: CliState, name: str, since: str) -> Answer:
    """Read the utilization of a run's or a node's workers, and the run's training curve.

    Raises:
        TpudashError: Nothing has this name, or nothing at all could be read.
    """
    check_name(name)
    async with open_session(state) as session:
        start = parse_since(since, session.clock.now())
        facts = await read_facts(session, runs=True)
        target = need_target(facts, name)
        run = target.run or _run_of(facts, target.node)
        logs = None if run is None else await read_run_logs(session, facts, run.name, start)
        curve = logs.figures.curve if logs else None
        series, is_read = await _series(session, facts, start)
        if logs is not None:
            series = [*logs.instances.joined(series), *logs.series]
        book = known_prices(state)
        now = session.clock.now()
        source = SourceStatus(METRICS, last_success=now if is_read else None)
        items: list[Item] = []
        for node in _nodes_of(facts, target):
            found = read_utilization(node, series, run, source, now, curve=curve)
            items += utilization_items(node, found, now)
            items += derived_items(node, found, logs.figures if logs else None, book, now)
        if target.run is not None and curve is not None:
            items += training_items(target.run, curve, now)
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)


def _run_of(facts: Facts, node: Node | None) -> Run | None:
    if node is None:
        return None
    return next((run for run in facts.runs if run.name == node.run), None)


def _nodes_of(facts: Facts, target: Target) -> list[Node]:
    if target.node is not None:
        return [target.node]
    return [node for node in facts.listing.nodes if target.run and node.run == target.run.name]


async def _series(
    session: Session, facts: Facts, start: datetime
) -> tuple[list[MetricSeries], bool]:
    """Return every series of the project, and whether any question was answered."""
    end = session.clock.now()
    period = metric_period(session.settings.intervals.metrics)
    answers = await asyncio.gather(
        *(
            session.cloud.monitoring.list_series(metric, start=start, end=end, period=period)
            for metric in METRIC_TYPES
        ),
        return_exceptions=True,
    )
    found: list[MetricSeries] = []
    is_read = False
    for metric, answer in zip(METRIC_TYPES, answers, strict=True):
        if isinstance(answer, NotFoundError):
            # A project that never had such a worker does not know the metric at all.
            is_read = True
        elif isinstance(answer, TpudashError):
            facts.failed(metric.rsplit("/", 2)[-1], answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            is_read = True
            found += answer
    return found, is_read


def utilization_items(node: Node, found: NodeUtilization, now: datetime) -> list[Item]:
    """Return one item for each worker and measure of a node: a value, or why there is none."""
    return [
        {
            "metric": METRICS_OF_NODES[measure].metric_type,
            "measure": str(measure),
            "node": node.name,
            "run": node.run,
            "worker": worker.worker_id,
            **_figure(cell, now),
            "points": [_point(point) for point in cell.history],
        }
        for worker in found.workers
        for measure, cell in worker.cells.items()
    ]


def _figure(cell: Cell, now: datetime) -> Item:
    return {
        "unit": cell.unit,
        "value": cell.value,
        "reason": str(cell.reason) if cell.reason else None,
        "time": timestamp(cell.as_of),
        "age_s": age_s(cell.as_of, now),
    }


def _point(point: MetricPoint) -> Item:
    return {"time": timestamp(point.time), "value": point.value}


def training_items(run: Run, curve: TrainingCurve, now: datetime) -> list[Item]:
    """Return one item for each figure of the trainer's `step` events, oldest point first."""
    items = []
    for name, unit in CURVE_UNITS.items():
        points = [point for point in curve.points if name in point.values]
        last = points[-1] if points else None
        items.append(
            {
                "metric": f"training/{name}",
                "measure": name,
                "node": None,
                "run": run.name,
                "worker": None,
                "unit": unit,
                "value": last.values[name] if last else None,
                "reason": None if last else str(NoValue.NO_DATA),
                "time": timestamp(last.time) if last else None,
                "age_s": age_s(last.time, now) if last else None,
                "points": [
                    {
                        "time": timestamp(point.time),
                        "value": point.values[name],
                        "step": point.step,
                        "attempt": point.attempt,
                    }
                    for point in points
                ],
            }
        )
    return items
