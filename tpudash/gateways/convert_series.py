"""Time series: from `google.monitoring.v3.TimeSeries` to ours, joined to nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.gateways.convert import to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORKER_MARK: Final = "-w-"
"""What stands between a node's id and the worker's number in names such as `demo-1-w-0`."""


def series_of(message: Any, unit: str) -> MetricSeries:
    """Convert one raw TimeSeries message; its points become oldest first, without gaps filled."""
    labels = message.resource.labels
    worker_id = labels.get("worker_id", "")
    return MetricSeries(
        metric=message.metric.type,
        node_id=_node_of(labels),
        zone=labels.get("zone") or labels.get("location") or None,
        worker_id=worker_id,
        unit=unit,
        points=tuple(sorted(_points(message), key=lambda point: point.time)),
        labels=dict(message.metric.labels),
    )


def _node_of(labels: Mapping[str, str]) -> str | None:
    """Return the node of a series: by label, or by a worker id that begins with the node's id."""
    named = labels.get("node_id")
    if named:
        return named
    node_id, mark, number = labels.get("worker_id", "").rpartition(WORKER_MARK)
    return node_id if mark and node_id and number.isascii() and number.isdigit() else None


def _points(message: Any) -> Iterator[MetricPoint]:
    for point in message.points:
        time = to_datetime(point.interval.end_time)
        value = _value(point.value)
        if time is not None and value is not None:
            yield MetricPoint(time, value)


def _value(typed: Any) -> float | None:
    """Return a value as a number; None for NaN, infinities and what is no number."""
    kind = typed.WhichOneof("value")
    if kind == "distribution_value":
        number = float(typed.distribution_value.mean)
    elif kind in {"double_value", "int64_value", "bool_value"}:
        number = float(getattr(typed, kind))
    else:
        return None
    return number if math.isfinite(number) else None
