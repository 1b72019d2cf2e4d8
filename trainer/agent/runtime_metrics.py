"""Figures of the chips from the metrics service that libtpu serves on the node while a job runs.

The service and its metrics are those of Google's `tpu-info`:
https://github.com/AI-Hypercomputer/cloud-accelerator-diagnostics (tpu_metric_service.proto, whose
messages are declared here as far as they are read, and metrics.py).
"""

from __future__ import annotations

import math
from typing import Any, Final

ADDRESS: Final = "localhost:8431"
METHOD: Final = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"
FIGURES: Final = {
    "tpu.runtime.tensorcore.dutycycle.percent": "duty_cycle_percent",
    "tpu.runtime.hbm.utilization.percent": "hbm_bandwidth_percent",
    "tpu.runtime.hbm.memory.usage.bytes": "hbm_used_bytes",
    "tpu.runtime.hbm.memory.total.bytes": "hbm_total_bytes",
}
_PACKAGE: Final = "tpu.monitoring.runtime"
_MESSAGES: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "AttrValue": {3: ("int_attr", "int64")},
    "Attribute": {1: ("key", "string"), 2: ("value", "AttrValue")},
    "Gauge": {1: ("as_double", "double"), 2: ("as_int", "int64")},
    "Metric": {1: ("attribute", "Attribute"), 3: ("gauge", "Gauge")},
    "TPUMetric": {1: ("name", "string"), 3: ("metrics", "repeated Metric")},
    "MetricRequest": {1: ("metric_name", "string")},
    "MetricResponse": {1: ("metric", "TPUMetric")},
}
"""Messages and their fields by number, as in the service's own proto."""
_SCALARS: Final = {"double": 1, "int64": 3, "string": 9}
"""Numbers of types in `FieldDescriptorProto.Type`."""
_ONE, _MANY = 1, 3
_MOST_DEVICES: Final = 64
_TIMEOUT_S: Final = 2.0
_OPTIONS: Final = (
    # A proxy set for the node's way out must not be asked for the node itself.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 10_000),
)


class RuntimeMetrics:
    """Asks the node's own service; where nobody serves it, nothing is said."""

    def __init__(self, address: str = ADDRESS) -> None:
        self._address = address
        self._ask: Any = None

    def chips(self) -> list[dict[str, float | int]]:
        """Return the figures of each chip, in order of their numbers; empty where none are had.

        Percentages are of 100; a chip of two cores has the memory of both.
        """
        try:
            ask = self._connect()
        except ImportError:
            return []
        found: dict[str, list[float | int]] = {}
        for metric, name in FIGURES.items():
            values = self._values(ask, metric)
            if values is None:
                break
            found[name] = values
        return chips_of(found)

    def _connect(self) -> Any:
        if self._ask is None:
            import grpc

            request, response = messages()
            channel = grpc.insecure_channel(self._address, options=_OPTIONS)
            self._ask = (
                request,
                channel.unary_unary(
                    METHOD,
                    request_serializer=request.SerializeToString,
                    response_deserializer=response.FromString,
                ),
            )
        return self._ask

    def _values(self, ask: tuple[Any, Any], metric: str) -> list[float | int] | None:
        """Return the values of one metric by device, or None where nobody answers in time."""
        import grpc

        request, call = ask
        try:
            answer = call(request(metric_name=metric), timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            is_silent = error.code() in {
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.DEADLINE_EXCEEDED,
            }
            return None if is_silent else []
        found = sorted(answer.metric.metrics, key=lambda one: one.attribute.value.int_attr)
        return [value for one in found[:_MOST_DEVICES] if (value := _value(one)) is not None]


def chips_of(found: dict[str, list[float | int]]) -> list[dict[str, float | int]]:
    """Join figures that are told by chip and those told by core.

    The duty cycle is told by chip and memory by core, of which v2 and v3 have two on a chip.
    What can't be told apart by chip is left out.
    """
    count = len(found.get("duty_cycle_percent", ())) or max(map(len, found.values()), default=0)
    chips: list[dict[str, float | int]] = [{} for _ in range(count)]
    for name, values in found.items():
        cores, rest = divmod(len(values), count) if count else (0, 0)
        if rest or not cores:
            continue
        for at, chip in enumerate(chips):
            own = values[at * cores : (at + 1) * cores]
            total = sum(own)
            chip[name] = total if name.endswith("_bytes") else round(total / cores, 2)
    return [chip for chip in chips if chip]


def _value(metric: Any) -> float | int | None:
    gauge = metric.gauge
    kind = gauge.WhichOneof("value")
    value = getattr(gauge, kind) if kind in {"as_double", "as_int"} else None
    return value if value is not None and math.isfinite(value) else None


def messages() -> tuple[Any, Any]:
    """Return the classes of request and response, with the fields that are read."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="tpudash_runtime_metrics.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (title, kind) in fields.items():
            field = message.field.add(name=title, number=number, label=_ONE)
            if kind in _SCALARS:
                field.type = _SCALARS[kind]  # type: ignore[assignment]
            else:
                field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind.removeprefix('repeated ')}"
                field.label = _MANY if kind.startswith("repeated") else _ONE  # type: ignore[assignment]
            if name == "Gauge":
                field.oneof_index = 0
        if name == "Gauge":
            message.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    request, response = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("MetricRequest", "MetricResponse")
    )
    return request, response
