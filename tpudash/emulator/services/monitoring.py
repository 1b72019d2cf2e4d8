"""`google.monitoring.v3.MetricService`: descriptors and time series of TPU metrics."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from google.api import metric_pb2, monitored_resource_pb2
from google.cloud.monitoring_v3.types import metric_service
from google.protobuf import empty_pb2
from google.rpc import code_pb2

from tpudash.emulator.errors import (
    ApiError,
    already_exists,
    invalid_argument,
    invalid_field,
    not_found,
)
from tpudash.emulator.filters.lexer import FilterError
from tpudash.emulator.filters.metric_filter import compile_metric_filter
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.paging import decode_token, encode_token, take_page
from tpudash.emulator.services.resources import MONITORED_RESOURCES, load_metrics_table
from tpudash.emulator.services.series_query import SeriesQuery, read_point

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.emulator.world.world import World

_NAME = re.compile(r"projects/([^/]+)(?:/(?:metric|monitoredResource)Descriptors/(.+))?")
_MAX_POINTS = 100_000
_MAX_WRITE = 200
_CUSTOM = ("custom.googleapis.com/", "external.googleapis.com/", "workload.googleapis.com/")
_empty = empty_pb2.Empty


def _split(name: str) -> tuple[str, str]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise invalid_field("name", f'"{name}" is not projects/*')
    return match[1], match[2] or ""


class MonitoringService:
    """Answers for Cloud Monitoring."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._descriptors = {
            row["type"]: _descriptor(row) for row in load_metrics_table()["metrics"]
        }
        self._custom: dict[str, Any] = {}

    def table(self) -> Service:
        """Return the service with all its methods."""
        metric, resource = (
            metric_pb2.MetricDescriptor,
            monitored_resource_pb2.MonitoredResourceDescriptor,
        )
        types = metric_service
        rows: dict[str, tuple[Any, Any, bool]] = {
            "ListMetricDescriptors": (
                self.list_descriptors,
                types.ListMetricDescriptorsResponse,
                False,
            ),
            "GetMetricDescriptor": (self.get_descriptor, metric, False),
            "CreateMetricDescriptor": (self.create_descriptor, metric, True),
            "DeleteMetricDescriptor": (self.delete_descriptor, _empty, True),
            "ListMonitoredResourceDescriptors": (
                self.list_resources,
                types.ListMonitoredResourceDescriptorsResponse,
                False,
            ),
            "GetMonitoredResourceDescriptor": (self.get_resource, resource, False),
            "ListTimeSeries": (self.list_series, types.ListTimeSeriesResponse, False),
            "CreateTimeSeries": (self.create_series, _empty, False),
        }
        methods = [
            Method(
                name,
                raw(getattr(types, f"{name}Request")),
                raw(response),
                function,
                mutating=mutating,
            )
            for name, (function, response, mutating) in rows.items()
        ]
        return Service("google.monitoring.v3.MetricService", tuple(methods))

    # ----------------------------------------------------------- descriptors

    async def list_descriptors(self, request: Any, _: Call) -> Any:
        """List metric descriptors; the filter knows metric.type with = and starts_with()."""
        project, _id = _split(request.name)
        chosen = _compiled(request.filter, needs_metric=False)
        items = [
            self._named(project, metric_type)
            for metric_type in sorted({*self._descriptors, *self._custom})
            if chosen.matches_metric(metric_type)
        ]
        page, token = take_page(
            items, request.page_size, request.page_token, default=10_000, maximum=10_000
        )
        return raw(metric_service.ListMetricDescriptorsResponse)(
            metric_descriptors=page, next_page_token=token
        )

    def _named(self, project: str, metric_type: str) -> Any:
        known = self._descriptors.get(metric_type) or self._custom.get(metric_type)
        if known is None:
            raise not_found(f"projects/{project}/metricDescriptors/{metric_type}")
        descriptor = metric_pb2.MetricDescriptor()
        descriptor.CopyFrom(known)
        descriptor.name = f"projects/{project}/metricDescriptors/{metric_type}"
        return descriptor

    async def get_descriptor(self, request: Any, _: Call) -> Any:
        """Return one metric descriptor."""
        return self._named(*_split(request.name))

    async def create_descriptor(self, request: Any, _: Call) -> Any:
        """Define a metric of one's own; the definition ends with the emulator."""
        project, _id = _split(request.name)
        wanted = request.metric_descriptor
        if not wanted.type.startswith(_CUSTOM):
            raise invalid_field("metric_descriptor.type", f"must begin with one of {_CUSTOM}")
        if wanted.type in self._custom:
            raise already_exists(f"projects/{project}/metricDescriptors/{wanted.type}")
        self._custom[wanted.type] = wanted
        return self._named(project, wanted.type)

    async def delete_descriptor(self, request: Any, _: Call) -> Any:
        """Remove a metric of one's own."""
        _project, metric_type = _split(request.name)
        if self._custom.pop(metric_type, None) is None:
            raise not_found(request.name)
        return _empty()

    async def list_resources(self, request: Any, _: Call) -> Any:
        """List the monitored resources."""
        project, _id = _split(request.name)
        items = [_resource(project, name) for name in sorted(MONITORED_RESOURCES)]
        page, token = take_page(
            items, request.page_size, request.page_token, default=1_000, maximum=1_000
        )
        return raw(metric_service.ListMonitoredResourceDescriptorsResponse)(
            resource_descriptors=page, next_page_token=token
        )

    async def get_resource(self, request: Any, _: Call) -> Any:
        """Return one monitored resource."""
        project, name = _split(request.name)
        if name not in MONITORED_RESOURCES:
            raise not_found(request.name)
        return _resource(project, name)

    # ---------------------------------------------------------------- series

    async def list_series(self, request: Any, _: Call) -> Any:
        """List series of one metric: filtered, cut to the interval, aligned, reduced, paged."""
        project, _id = _split(request.name)
        if request.order_by:
            raise invalid_field("order_by", "must be empty")
        chosen = _compiled(request.filter, needs_metric=True)
        descriptor = self._descriptors.get(chosen.metric) or self._custom.get(chosen.metric)
        if descriptor is None:
            raise ApiError(
                code_pb2.NOT_FOUND,
                f'Cannot find metric(s) that match type = "{chosen.metric}". If a metric was '
                "created recently, it could take up to 10 minutes to become available. "
                "Please try again soon.",
            )
        query = SeriesQuery(request, descriptor, self._visible_until())
        found = query.run(
            (key, points)
            for key, points in self._world.series.of_metric(project, chosen.metric)
            if chosen.matches(key)
        )
        offset = decode_token(request.page_token) or 0
        limit = min(request.page_size or _MAX_POINTS, _MAX_POINTS)
        response = raw(metric_service.ListTimeSeriesResponse)(unit=descriptor.unit)
        page, following = query.page(found, offset, limit)
        response.time_series.extend(page)
        if following is not None:
            response.next_page_token = encode_token(following)
        return response

    def _visible_until(self) -> datetime:
        """Return the moment up to which samples can be read."""
        latency = timedelta(seconds=self._world.settings.metrics_latency_s)
        return self._world.clock.now() - latency

    async def create_series(self, request: Any, _: Call) -> Any:
        """Write one point to each of up to 200 series of custom metrics."""
        project, _id = _split(request.name)
        if len(request.time_series) > _MAX_WRITE:
            raise invalid_field("time_series", f"more than {_MAX_WRITE}")
        for series in request.time_series:
            if not series.metric.type.startswith(_CUSTOM):
                raise invalid_field(
                    "time_series.metric.type", f'"{series.metric.type}" cannot be written to'
                )
            if len(series.points) != 1:
                raise invalid_field("time_series.points", "exactly one point is required")
        for series in request.time_series:
            if series.metric.type not in self._custom:
                self._custom[series.metric.type] = _inferred(series)
            self._world.series.write(read_point(project, series))
        return _empty()


def _compiled(text: str, *, needs_metric: bool) -> Any:
    try:
        return compile_metric_filter(text, needs_metric=needs_metric)
    except FilterError as error:
        raise invalid_argument(f"Field filter had an invalid value: {error}") from error


def _descriptor(row: dict[str, Any]) -> Any:
    descriptor = metric_pb2.MetricDescriptor(
        type=row["type"],
        metric_kind=row["metric_kind"],
        value_type=row["value_type"],
        unit=row["unit"],
        monitored_resource_types=row["monitored_resources"],
        display_name=row["type"].partition("/")[2],
    )
    for label in row["labels"]:
        descriptor.labels.add(key=label)
    if row["sample_period_s"]:
        descriptor.metadata.sample_period.FromSeconds(row["sample_period_s"])
    if row["visibility_latency_s"]:
        descriptor.metadata.ingest_delay.FromSeconds(row["visibility_latency_s"])
    return descriptor


def _inferred(series: Any) -> Any:
    """Return the descriptor that Cloud Monitoring makes of a first write."""
    value = series.points[0].value.WhichOneof("value")
    return metric_pb2.MetricDescriptor(
        type=series.metric.type,
        metric_kind=series.metric_kind or metric_pb2.MetricDescriptor.GAUGE,
        value_type=value.removesuffix("_value").upper(),
        monitored_resource_types=[series.resource.type],
    )


def _resource(project: str, name: str) -> Any:
    descriptor = monitored_resource_pb2.MonitoredResourceDescriptor(
        name=f"projects/{project}/monitoredResourceDescriptors/{name}", type=name
    )
    for label in MONITORED_RESOURCES[name]:
        descriptor.labels.add(key=label)
    return descriptor
