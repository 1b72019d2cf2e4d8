"""Time series of utilization, with the reasons why a value may be missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class NoValue(StrEnum):
    """Why there is no figure; none of these is 0."""

    NO_WORKLOAD = "no workload"
    NOT_YET = "not yet"
    AGENT_FAILED = "agent failed"
    STALE = "stale"
    NO_DATA = "no data"


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One sample: the end of its period and its value in the series' unit."""

    time: datetime
    value: float


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One time series, oldest point first.

    Attributes:
        metric: Metric type such as `tpu.googleapis.com/cpu/utilization`.
        node_id: Node that the series could be joined to, or None.
        worker_id: Worker as the API named it.
        unit: UCUM unit of the values: `%`, `By`, `s`, `1`.
        labels: The metric's own labels, such as `accelerator_id` or `core`.
    """

    metric: str
    node_id: str | None
    zone: str | None
    worker_id: str
    unit: str
    points: tuple[MetricPoint, ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> MetricPoint | None:
        """The newest point, or None."""
        return self.points[-1] if self.points else None
