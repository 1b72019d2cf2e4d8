"""The arithmetic of ListTimeSeries: interval, alignment, reduction and pages."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from google.api import metric_pb2
from google.cloud.monitoring_v3.types import common, metric
from google.cloud.monitoring_v3.types import metric_service as service_types

from tpudash.emulator.errors import invalid_argument, invalid_field
from tpudash.emulator.rpc import raw
from tpudash.emulator.world.series import Labels, Point, SeriesKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

TimeSeries: Any = raw(metric.TimeSeries)
Aligner = common.Aggregation.Aligner
Reducer = common.Aggregation.Reducer
Kind = metric_pb2.MetricDescriptor.MetricKind
ValueType = metric_pb2.MetricDescriptor.ValueType
Found: TypeAlias = "list[tuple[SeriesKey, list[Point]]]"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_ALIGNMENT_NS = 60_000_000_000
_COUNT_ALIGNERS = {Aligner.ALIGN_COUNT}
_DELTA_ALIGNERS = {Aligner.ALIGN_DELTA}
_DOUBLE_ALIGNERS = {
    Aligner.ALIGN_RATE,
    Aligner.ALIGN_MEAN,
    Aligner.ALIGN_STDDEV,
    Aligner.ALIGN_FRACTION_TRUE,
    Aligner.ALIGN_PERCENTILE_99,
    Aligner.ALIGN_PERCENTILE_95,
    Aligner.ALIGN_PERCENTILE_50,
    Aligner.ALIGN_PERCENTILE_05,
}


def _percentile(share: float) -> Callable[[Sequence[float]], float]:
    def compute(values: Sequence[float]) -> float:
        ordered = sorted(values)
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return compute


_ALIGN: dict[int, Callable[[Sequence[float]], float]] = {
    Aligner.ALIGN_MIN: min,
    Aligner.ALIGN_MAX: max,
    Aligner.ALIGN_MEAN: statistics.fmean,
    Aligner.ALIGN_COUNT: len,
    Aligner.ALIGN_SUM: sum,
    Aligner.ALIGN_DELTA: sum,
    Aligner.ALIGN_STDDEV: statistics.pstdev,
    Aligner.ALIGN_NEXT_OLDER: lambda values: values[-1],
    Aligner.ALIGN_PERCENTILE_99: _percentile(0.99),
    Aligner.ALIGN_PERCENTILE_95: _percentile(0.95),
    Aligner.ALIGN_PERCENTILE_50: _percentile(0.50),
    Aligner.ALIGN_PERCENTILE_05: _percentile(0.05),
}
_REDUCE: dict[int, Callable[[Sequence[float]], float]] = {
    Reducer.REDUCE_MEAN: statistics.fmean,
    Reducer.REDUCE_MIN: min,
    Reducer.REDUCE_MAX: max,
    Reducer.REDUCE_SUM: sum,
    Reducer.REDUCE_STDDEV: statistics.pstdev,
    Reducer.REDUCE_COUNT: len,
    Reducer.REDUCE_PERCENTILE_99: _percentile(0.99),
    Reducer.REDUCE_PERCENTILE_95: _percentile(0.95),
    Reducer.REDUCE_PERCENTILE_50: _percentile(0.50),
    Reducer.REDUCE_PERCENTILE_05: _percentile(0.05),
}


class SeriesQuery:
    """One request, checked.

    Args:
        request: A ListTimeSeriesRequest.
        descriptor: The descriptor of its metric.
        visible_until: The moment up to which samples can be read yet.

    Raises:
        ApiError: INVALID_ARGUMENT for an interval or aggregation that makes no sense.
    """

    def __init__(self, request: Any, descriptor: Any, visible_until: datetime) -> None:
        if not request.interval.HasField("end_time"):
            raise invalid_field("interval.end_time", "required")
        self._end = request.interval.end_time.ToNanoseconds()
        self._start = self._end
        if request.interval.HasField("start_time"):
            self._start = request.interval.start_time.ToNanoseconds()
        if self._start > self._end:
            raise invalid_field("interval.start_time", "must not be later than end_time")
        self._visible_until = _ns(visible_until)
        self._headers = request.view == service_types.ListTimeSeriesRequest.TimeSeriesView.HEADERS
        aggregation = request.aggregation
        self._aligner = aggregation.per_series_aligner
        self._reducer = aggregation.cross_series_reducer
        self._group_by = tuple(aggregation.group_by_fields)
        self._period = aggregation.alignment_period.ToNanoseconds()
        self._kind = descriptor.metric_kind
        self._value_type = descriptor.value_type
        self._check(descriptor)

    def _check(self, descriptor: Any) -> None:
        if self._aligner == Aligner.ALIGN_NONE:
            if self._reducer != Reducer.REDUCE_NONE:
                raise invalid_argument("A cross-series reducer needs a per-series aligner.")
            return
        known = self._aligner in _ALIGN or self._aligner == Aligner.ALIGN_RATE
        if not known or (self._reducer and self._reducer not in _REDUCE):
            raise invalid_argument("The aligner or reducer is not supported by the emulator.")
        if self._period < _MIN_ALIGNMENT_NS:
            raise invalid_field("aggregation.alignment_period", "must be at least 60 s")
        if self._kind == Kind.GAUGE and self._aligner in {Aligner.ALIGN_RATE, Aligner.ALIGN_DELTA}:
            raise invalid_argument(
                f"The aligner cannot be applied to metrics of kind GAUGE ({descriptor.type})."
            )

    def run(self, series: Iterable[tuple[SeriesKey, Iterable[Point]]]) -> Found:
        """Return the resulting series, points newest first; series without points are left out."""
        found: Found = []
        for key, points in series:
            cut = [point for point in points if self._inside(point)]
            if self._aligner != Aligner.ALIGN_NONE:
                cut = self._align(cut)
            if cut:
                found.append((key, cut))
        if self._reducer != Reducer.REDUCE_NONE:
            found = self._reduce(found)
        return [(key, points[::-1]) for key, points in found]

    def _inside(self, point: Point) -> bool:
        """The interval is open at its start and closed at its end, except where both agree."""
        end = _ns(point.end)
        if end > self._visible_until:
            return False
        return bool(
            end == self._end if self._start == self._end else self._start < end <= self._end
        )

    def _align(self, points: Sequence[Point]) -> list[Point]:
        """Return one point per period, counted back from the end of the interval."""
        buckets: dict[int, list[Point]] = {}
        for point in points:
            index = (self._end - _ns(point.end)) // self._period
            buckets.setdefault(index, []).append(point)
        aligned = []
        for index in sorted(buckets, reverse=True):
            values = [_as_number(point.value) for point in buckets[index]]
            if self._aligner == Aligner.ALIGN_RATE:
                value = sum(values) / (self._period / 1e9)
            else:
                value = _ALIGN[self._aligner](values)
            end = _moment(self._end - index * self._period)
            start = _moment(self._end - (index + 1) * self._period)
            is_delta = self._result_kind() == Kind.DELTA
            aligned.append(Point(start if is_delta else end, end, self._typed(value)))
        return aligned

    def _reduce(self, found: Found) -> Found:
        groups: dict[SeriesKey, list[list[Point]]] = {}
        for key, points in found:
            groups.setdefault(self._group_key(key), []).append(points)
        reduced: Found = []
        for key, members in groups.items():
            by_end: dict[datetime, list[Point]] = {}
            for points in members:
                for point in points:
                    by_end.setdefault(point.end, []).append(point)
            out = []
            for end in sorted(by_end):
                together = by_end[end]
                value = _REDUCE[self._reducer]([_as_number(point.value) for point in together])
                out.append(Point(together[0].start, end, self._typed(value, reduced=True)))
            reduced.append((key, out))
        return reduced

    def _group_key(self, key: SeriesKey) -> SeriesKey:
        return SeriesKey(
            key.project,
            key.metric,
            self._kept("metric", key.metric_labels),
            key.resource,
            self._kept("resource", key.resource_labels),
        )

    def _kept(self, side: str, labels: Labels) -> Labels:
        fields = {f"{side}.labels.{name}": name for name, _ in labels}
        fields |= {f"{side}.label.{name}": name for name, _ in labels}
        kept = {fields[field] for field in self._group_by if field in fields}
        return tuple(item for item in labels if item[0] in kept)

    def _result_kind(self) -> int:
        if self._aligner == Aligner.ALIGN_NONE:
            return int(self._kind)
        keeps = self._kind == Kind.DELTA and self._aligner in {
            Aligner.ALIGN_DELTA,
            Aligner.ALIGN_SUM,
        }
        return int(Kind.DELTA if keeps else Kind.GAUGE)

    def _result_type(self, *, reduced: bool) -> int:
        reducer = self._reducer if reduced else Reducer.REDUCE_NONE
        if self._aligner in _COUNT_ALIGNERS or reducer == Reducer.REDUCE_COUNT:
            return int(ValueType.INT64)
        if self._aligner in _DOUBLE_ALIGNERS or reducer not in {
            Reducer.REDUCE_NONE,
            Reducer.REDUCE_SUM,
            Reducer.REDUCE_MIN,
            Reducer.REDUCE_MAX,
        }:
            return int(ValueType.DOUBLE)
        return int(self._value_type)

    def _typed(self, value: float, *, reduced: bool = False) -> float | int:
        return round(value) if self._result_type(reduced=reduced) == ValueType.INT64 else value

    def page(self, found: Found, offset: int, limit: int) -> tuple[list[Any], int | None]:
        """Return series that hold `limit` points from point number `offset` on, and what is next.

        In the HEADERS view series are counted and points left out.
        """
        if self._headers:
            page = found[offset : offset + limit]
            following = offset + limit if offset + limit < len(found) else None
            return [self.message(key, ()) for key, _ in page], following
        out = []
        position = 0
        for key, points in found:
            start = max(0, offset - position)
            stop = min(len(points), offset + limit - position)
            if start < stop:
                out.append(self.message(key, points[start:stop]))
            position += len(points)
        total = offset + limit
        return out, total if total < position else None

    def message(self, key: SeriesKey, points: Iterable[Point]) -> Any:
        """Return one series as the API shapes it."""
        reduced = self._reducer != Reducer.REDUCE_NONE
        value_type = self._result_type(reduced=reduced)
        return write_series(key, points, self._result_kind(), value_type)


def write_series(key: SeriesKey, points: Iterable[Point], kind: int, value_type: int) -> Any:
    """Return a TimeSeries message."""
    series = TimeSeries(metric_kind=kind, value_type=value_type)
    series.metric.type = key.metric
    series.metric.labels.update(dict(key.metric_labels))
    series.resource.type = key.resource
    series.resource.labels.update(dict(key.resource_labels))
    field = ValueType.Name(value_type).lower() + "_value"
    for point in points:
        message = series.points.add()
        message.interval.end_time.FromDatetime(point.end)
        message.interval.start_time.FromDatetime(point.start)
        setattr(message.value, field, point.value)
    return series


def read_point(project: str, series: Any) -> tuple[SeriesKey, Point]:
    """Return the key and the first point of a TimeSeries message."""
    key = SeriesKey(
        project,
        series.metric.type,
        tuple(sorted(series.metric.labels.items())),
        series.resource.type or "global",
        tuple(sorted(series.resource.labels.items())),
    )
    message = series.points[0]
    end = message.interval.end_time.ToDatetime(UTC)
    start = end
    if message.interval.HasField("start_time"):
        start = message.interval.start_time.ToDatetime(UTC)
    kind = message.value.WhichOneof("value")
    if kind is None or kind == "distribution_value":
        raise invalid_field("time_series.points.value", "a number, boolean or string is required")
    return key, Point(start, end, getattr(message.value, kind))


def _ns(moment: datetime) -> int:
    """Return whole nanoseconds since the epoch: floats would blur the interval's ends."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1_000


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1_000)


def _as_number(value: float | bool | str) -> float:
    return float(value) if not isinstance(value, str) else math.nan
