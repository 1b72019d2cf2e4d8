"""Time series: points by metric and resource, newest last, bounded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tpudash.emulator.identifiers import project_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tpudash.emulator.world.nodes import NodeRecord

Labels: TypeAlias = tuple[tuple[str, str], ...]
GCE_WORKER = "tpu.googleapis.com/GceTpuWorker"
TPU_WORKER = "tpu_worker"
_KEPT_POINTS = 20_000
_KEPT_SERIES = 50_000


def labels_of(**labels: str) -> Labels:
    """Return labels in a fixed order."""
    return tuple(sorted(labels.items()))


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What makes a series one series."""

    project: str
    metric: str
    metric_labels: Labels
    resource: str
    resource_labels: Labels


@dataclass(frozen=True, slots=True)
class Point:
    """One value over an interval; a gauge has equal start and end."""

    start: datetime
    end: datetime
    value: float | int | bool | str


class SeriesStore:
    """All series, in memory."""

    def __init__(self) -> None:
        self._series: dict[str, dict[SeriesKey, deque[Point]]] = {}

    def write(self, *points: tuple[SeriesKey, Point]) -> None:
        """Append points; one that is not newer than its series' last is left out."""
        for key, point in points:
            of_metric = self._series.setdefault(key.metric, {})
            series = of_metric.get(key)
            if series is None:
                if len(of_metric) >= _KEPT_SERIES:
                    del of_metric[next(iter(of_metric))]
                series = of_metric[key] = deque(maxlen=_KEPT_POINTS)
            if not series or point.end > series[-1].end:
                series.append(point)

    def last(self, key: SeriesKey) -> Point | None:
        """Return the newest point of a series."""
        series = self._series.get(key.metric, {}).get(key)
        return series[-1] if series else None

    def of_metric(self, project: str, metric: str) -> Iterator[tuple[SeriesKey, deque[Point]]]:
        """Yield the series of a project's metric, in the order of their beginning."""
        for key, points in self._series.get(metric, {}).items():
            if key.project == project:
                yield key, points

    def metrics(self, project: str) -> set[str]:
        """Return the metric types for which a project has data."""
        return {
            metric
            for metric, series in self._series.items()
            if any(key.project == project for key in series)
        }


def gce_worker_labels(record: NodeRecord, worker: int) -> Labels:
    """Return the labels of a worker as resource `tpu.googleapis.com/GceTpuWorker`."""
    return labels_of(
        resource_container=str(project_number(record.name.project)),
        location=record.name.zone,
        worker_id=f"{record.name.id}-w-{worker}",
    )


def tpu_worker_labels(record: NodeRecord, worker: int) -> Labels:
    """Return the labels of a worker as resource `tpu_worker`."""
    return labels_of(
        project_id=record.name.project,
        zone=record.name.zone,
        node_id=record.name.id,
        worker_id=str(worker),
    )


def interruption_point(record: NodeRecord, reason: str, now: datetime) -> tuple[SeriesKey, Point]:
    """Return one interruption of a node, as `instance/interruption_count` counts them."""
    key = SeriesKey(
        record.name.project,
        "tpu.googleapis.com/instance/interruption_count",
        labels_of(
            instance_name=record.name.id,
            interruption_type="TERMINATE",
            interruption_reason=reason,
        ),
        GCE_WORKER,
        gce_worker_labels(record, 0),
    )
    return key, Point(now, now, 1)
