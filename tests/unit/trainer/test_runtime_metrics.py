"""The chips' figures that the agent reads from libtpu's service on the node."""

from __future__ import annotations

import threading
from concurrent import futures
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc

from tests.waiting import wait_until
from trainer.agent import runtime_metrics
from trainer.agent.runtime_metrics import FIGURES, METHOD, RuntimeMetrics, chips_of, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

DUTY, BANDWIDTH, USED, TOTAL = FIGURES


@contextmanager
def served(answer: Callable[[str, Any, Any], None], port: int = 0) -> Iterator[str]:
    """Serve the metrics service as libtpu does, and return its address."""
    request_type, response_type = messages()

    def handle(request: Any, context: Any) -> Any:
        response = response_type()
        answer(request.metric_name, response, context)
        return response

    service, _, method = METHOD[1:].partition("/")
    handler = grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_type.FromString,
        response_serializer=response_type.SerializeToString,
    )
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    port = server.add_insecure_port(f"localhost:{port}")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()


def tell(response: Any, *values: float | str) -> None:
    """Put one value for each device into an answer, the last device first."""
    response.metric.name = "x"
    for device, value in reversed(list(enumerate(values))):
        one = response.metric.metrics.add()
        one.attribute.key = "device-id"
        one.attribute.value.int_attr = device
        if isinstance(value, int):
            one.gauge.as_int = value
        elif isinstance(value, float):
            one.gauge.as_double = value


def test_figures_of_a_v2_host_are_told_by_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    def answer(metric: str, response: Any, context: Any) -> None:
        if metric == DUTY:
            tell(response, 90.0, 80.0)
        elif metric == USED:
            tell(response, 1, 2, 3, 4)
        elif metric == TOTAL:
            tell(response, 8, 8, 8, 8)
        else:
            context.abort(grpc.StatusCode.NOT_FOUND, "this libtpu has no such metric")

    with served(answer) as address:
        assert RuntimeMetrics(address).chips() == [
            {"duty_cycle_percent": 90.0, "hbm_used_bytes": 3, "hbm_total_bytes": 16},
            {"duty_cycle_percent": 80.0, "hbm_used_bytes": 7, "hbm_total_bytes": 16},
        ]


def test_bad_answers_are_left_out() -> None:
    def answer(metric: str, response: Any, context: Any) -> None:
        if metric == DUTY:
            tell(response, 50.0, 60.0)
        elif metric == BANDWIDTH:
            tell(response, float("nan"), "no value")
        elif metric == USED:
            tell(response, 1, 2, 3)
        else:
            context.abort(grpc.StatusCode.INTERNAL, "x" * 5_000)

    with served(answer) as address:
        found = RuntimeMetrics(address).chips()
    assert found == [{"duty_cycle_percent": 50.0}, {"duty_cycle_percent": 60.0}]


def test_nothing_is_said_where_nobody_serves_and_it_is_heard_once_somebody_does() -> None:
    with served(lambda *_: None) as address:
        metrics = RuntimeMetrics(address)
        assert metrics.chips() == []
    assert metrics.chips() == []
    port = int(address.rpartition(":")[2])
    with served(lambda name, response, _: tell(response, 7.0 if name == DUTY else 7), port):
        wait_until(metrics.chips, within=10, what="the service is heard")
        assert [chip["duty_cycle_percent"] for chip in metrics.chips()] == [7.0]


def test_a_service_that_hangs_is_asked_one_question_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_metrics, "_TIMEOUT_S", 0.2)
    asked: list[str] = []
    over = threading.Event()

    def answer(metric: str, _: Any, __: Any) -> None:
        asked.append(metric)
        over.wait(10)

    with served(answer) as address:
        assert RuntimeMetrics(address).chips() == []
        over.set()
    assert asked == [DUTY]


def test_memory_alone_is_told_by_device() -> None:
    assert chips_of({"hbm_used_bytes": [1, 2], "duty_cycle_percent": []}) == [
        {"hbm_used_bytes": 1},
        {"hbm_used_bytes": 2},
    ]
    assert chips_of({}) == []
