"""What `tpudash metrics` reads out of a run's log: its steps, its FLOPs, its agents' samples."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.commands.metric_derived import RunFigures
from tpudash.errors import TpudashError
from tpudash.gateways.log_filters import all_of, run_filter, since_filter
from tpudash.store.derived import agent_series, flops_per_example
from tpudash.store.instances import InstanceBook
from tpudash.store.series_book import SeriesBook
from tpudash.store.training_curve import training_curve

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.commands.session import Session
    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries

MOST_STEPS: Final = 2_000
MOST_SAMPLES: Final = 1_000
STEP: Final = 'jsonPayload.event="step"'
HOST: Final = 'jsonPayload.event="host"'
TELLS_FLOPS: Final = 'jsonPayload.event="stage" OR jsonPayload.event="finish"'


@dataclass(frozen=True, slots=True)
class RunLogs:
    """Figures of the run, time series that the agents on its nodes sampled, and their VMs."""

    figures: RunFigures
    series: tuple[MetricSeries, ...]
    instances: InstanceBook


async def read_run_logs(
    session: Session, facts: Facts, run: str, start: datetime
) -> RunLogs | None:
    """Return what a run's log tells since a time, or None where it can't be read."""
    since = since_filter(start)
    questions = (
        (all_of(run_filter(run), STEP, since), MOST_STEPS),
        (all_of(run_filter(run), HOST, since), MOST_SAMPLES),
        (all_of(run_filter(run), STEP), 1),
        (all_of(run_filter(run), TELLS_FLOPS), 100),
    )
    try:
        steps, samples, newest, told = await asyncio.gather(
            *(_newest(session, filter_, limit) for filter_, limit in questions)
        )
    except TpudashError as error:
        facts.failed("training", error)
        return None
    last_step = max((entry.timestamp for entry in newest), default=None)
    book = SeriesBook()
    nodes = book.add(agent_series(samples))
    instances = InstanceBook()
    instances.take(samples)
    return RunLogs(
        RunFigures(training_curve(steps, run), last_step, flops_per_example(told, run)),
        tuple(one for node_id in sorted(nodes) for one in book.of(node_id)),
        instances,
    )


async def _newest(session: Session, filter_: str, limit: int) -> tuple[LogEntry, ...]:
    found = await session.cloud.logging.list_entries(filter_, newest_first=True, limit=limit)
    return tuple(found)
