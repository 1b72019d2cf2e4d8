"""Time series of all nodes: one question for each metric type and period, never one per node."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.errors import NotFoundError, TpudashError
from tpudash.store.changes import SeriesRead
from tpudash.store.instances import InstanceBook
from tpudash.store.snapshot import METRICS
from tpudash.store.utilization import GOOGLE_PERIOD
from tpudash.store.utilization import METRICS as METRICS_OF_NODES

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.clock import Clock
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

METRIC_TYPES: Final = tuple(metric.metric_type for metric in METRICS_OF_NODES.values())
HISTORY: Final = timedelta(minutes=30)
OVERLAP: Final = timedelta(minutes=5)
"""Points may become visible up to 180 s late, so the newest minutes are always read again."""
ASK_ABSENT_AGAIN: Final = timedelta(minutes=10)


def metric_period(interval_s: float) -> timedelta:
    """Return the alignment period for a reading interval; only an emulator's is below 60 s."""
    return min(timedelta(seconds=interval_s), GOOGLE_PERIOD)


class MetricsSource:
    """Reads the utilization metrics of every node of the project.

    Args:
        interval_s: Seconds between two readings. Below 60 it is taken for the metrics' own
            period too, which only an emulator has.
    """

    name = METRICS

    def __init__(self, store: Store, clock: Clock, interval_s: float) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._period = metric_period(interval_s)
        self._read_until: dict[str, datetime] = {}
        self._absent_until: dict[str, datetime] = {}
        self._instances = InstanceBook()
        self._logs_taken = 0

    async def poll(self, cloud: Cloud) -> None:
        """Read each metric; one that fails does not keep the others from being read.

        Raises:
            TpudashError: What the first metric that failed said.
        """
        self._learn_instances()
        now = self._clock.now()
        first: TpudashError | None = None
        for metric in METRIC_TYPES:
            if now < self._absent_until.get(metric, now):
                continue
            try:
                await self._read(cloud, metric, now)
            except NotFoundError as error:
                # A project that never had such a worker does not know the metric at all.
                logger.info("no metric %s: %s", metric, error)
                self._absent_until[metric] = now + ASK_ABSENT_AGAIN
            except TpudashError as error:
                first = first or error
        if first is not None:
            raise first

    def _learn_instances(self) -> None:
        """Learn from the log that has arrived since the last time which VM is whose."""
        logs = self._store.logs
        fresh = logs.tail_since(self._logs_taken) if logs.arrived != self._logs_taken else []
        self._instances.take(entry for _, entry in fresh)
        self._logs_taken = logs.arrived

    async def _read(self, cloud: Cloud, metric: str, now: datetime) -> None:
        known = self._read_until.get(metric)
        start = now - HISTORY if known is None else min(known, now) - OVERLAP
        series = await cloud.monitoring.list_series(
            metric, start=max(start, now - HISTORY), end=now, period=self._period
        )
        self._read_until[metric] = now
        self._store.apply(SeriesRead(self._instances.joined(series), now))

    def interval_s(self) -> float:
        """Return seconds until the next reading."""
        return self._interval_s
