"""`tpudash metrics`: utilization of a run's or a node's workers, and the run's training curve."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import click

from tpudash.commands.nodes import short_name
from tpudash.commands.output import Answer, Column, Item, SourceError, print_answer, timestamp
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.tui.format import bytes_size, number

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.commands.session import Session
    from tpudash.commands.target import Target
    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Node

CURVES: Final = {
    "loss": "1",
    "accuracy": "1",
    "examples_per_second": "{examples}/s",
    "step_time_s": "s",
    "input_wait_fraction": "1",
    "device_fraction": "1",
}
"""Figures of the trainer's `step` events, with their UCUM units."""
MOST_STEPS: Final = 2_000


def _value(item: Item) -> str | None:
    value = item["value"]
    if value is None:
        return item["reason"] if isinstance(item["reason"], str) else None
    if item["unit"] == "By":
        return bytes_size(value)
    return number(value) + (" %" if item["unit"] == "%" else "")


COLUMNS = (
    Column("NODE", lambda item: short_name(item["node"]), gives_way=True),
    Column("WORKER", lambda item: item["worker"]),
    Column("METRIC", lambda item: short_metric(item["metric"])),
    Column("VALUE", _value, right=True),
    Column("UNIT", lambda item: item["unit"]),
    Column("AT", lambda item: item["time"]),
    Column("POINTS", lambda item: len(item["points"]), right=True),
    Column("LABELS", lambda item: _labels(item["labels"]), gives_way=True),
)


def short_metric(metric: str) -> str:
    """Return a metric type without its service's name."""
    return metric.removeprefix("tpu.googleapis.com/")


def _labels(labels: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in labels.items())


@click.command()
@click.argument("name", metavar="RUN|NODE")
@click.option("--since", default="30m", metavar="AGE|TIME", help="Begin there: 15m, 2h, a time.")
@json_option
@connection_options
@pass_state
def metrics(state: CliState, name: str, since: str, as_json: bool) -> None:
    """Show utilization by node and worker, and for a run its training curve.

    Metrics of Cloud TPU are sampled every 60 s and become visible up to 180 s later.
    """
    answer = run_async(_metrics(state, name, since))
    empty = f"no metrics of {name} since {since}; they become visible up to 180 s late"
    print_answer(answer, COLUMNS, as_json=as_json, empty=empty)


async def _metrics(state: CliState, name: str, since: str) -> Answer:
    from tpudash.commands.durations import parse_since
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session
    from tpudash.commands.target import check_name, need_target

    check_name(name)
    async with open_session(state) as session:
        start = parse_since(since, session.clock.now())
        facts = await read_facts(session, runs=True)
        target = need_target(facts, name)
        nodes = _nodes_of(facts, target)
        errors = list(facts.errors)
        items, more = await _utilization(session, nodes, start)
        errors += more
        if target.run is not None:
            curves, more = await _training(session, target.run.name, start)
            items += curves
            errors += more
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, errors)


def _nodes_of(facts: Facts, target: Target) -> list[Node]:
    if target.node is not None:
        return [target.node]
    return [node for node in facts.listing.nodes if target.run and node.run == target.run.name]


async def _utilization(
    session: Session, nodes: list[Node], start: datetime
) -> tuple[list[Item], list[SourceError]]:
    from tpudash.errors import NotFoundError, TpudashError
    from tpudash.pollers.metrics import METRIC_TYPES, metric_period

    end = session.clock.now()
    period = metric_period(session.settings.intervals.metrics)
    answers = await asyncio.gather(
        *(
            session.cloud.monitoring.list_series(metric, start=start, end=end, period=period)
            for metric in METRIC_TYPES
        ),
        return_exceptions=True,
    )
    wanted = {(node.node_id, node.zone): node for node in nodes}
    items: list[Item] = []
    errors: list[SourceError] = []
    for metric, answer in zip(METRIC_TYPES, answers, strict=True):
        if isinstance(answer, NotFoundError):
            continue
        if isinstance(answer, TpudashError):
            errors.append(SourceError.of(short_metric(metric), answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            for series in answer:
                node = wanted.get((series.node_id or "", series.zone or ""))
                if node is not None:
                    items.append(series_item(series, node))
    return items, errors


def series_item(series: MetricSeries, node: Node | None) -> Item:
    """Return one time series with its newest value."""
    last = series.last
    return {
        "metric": series.metric,
        "node": node.name if node else series.node_id,
        "run": node.run if node else None,
        "worker": series.worker_id or None,
        "labels": dict(series.labels),
        "unit": series.unit,
        "value": last.value if last else None,
        "time": timestamp(last.time) if last else None,
        "reason": None if last else "no data",
        "points": [{"time": timestamp(one.time), "value": one.value} for one in series.points],
    }


async def _training(
    session: Session, run: str, start: datetime
) -> tuple[list[Item], list[SourceError]]:
    """Return the figures of the trainer's own events as series."""
    from tpudash.errors import TpudashError

    filter_ = (
        f'resource.type="tpu_worker" AND labels."tpudash-run"="{run}"'
        f' AND jsonPayload.event="step" AND timestamp>="{start.isoformat()}"'
    )
    try:
        entries = await session.cloud.logging.list_entries(
            filter_, newest_first=True, limit=MOST_STEPS
        )
    except TpudashError as error:
        return [], [SourceError.of("training", error)]
    return training_items(sorted(entries, key=lambda entry: entry.timestamp), run), []


def training_items(entries: list[LogEntry], run: str) -> list[Item]:
    """Return one item for each figure of `step` events, oldest point first."""
    points: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        payload = entry.payload or {}
        for name in CURVES:
            value = payload.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                points[name].append(
                    {
                        "time": timestamp(entry.timestamp),
                        "value": value,
                        "step": payload.get("step"),
                        "attempt": entry.attempt,
                    }
                )
    last = entries[-1] if entries else None
    return [
        {
            "metric": f"training/{name}",
            "node": last.node_id if last else None,
            "run": run,
            "worker": last.worker_id or None if last else None,
            "labels": {},
            "unit": unit,
            "value": points[name][-1]["value"],
            "time": points[name][-1]["time"],
            "reason": None,
            "points": points[name],
        }
        for name, unit in CURVES.items()
        if points[name]
    ]
