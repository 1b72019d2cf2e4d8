"""The server's figures: for Prometheus, and over a window of time for the `serve` events."""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter as Tally
from typing import Any

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

_LATENCY_BUCKETS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05),
    *(0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0),
)
_BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_MOST_KEPT = 200_000
"""Latencies kept in one window; beyond that they are counted, not kept."""


class Meters:
    """Counts what the server does."""

    def __init__(self, model: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        latency = ("model_latency_seconds", "Time from a request to its answer, where it had one")
        compute = ("model_compute_seconds", "Time of one call of the model")
        batch = ("model_batch_size", "Instances in one call of the model")
        self._latency = _histogram(*latency, _LATENCY_BUCKETS, model, registry)
        self._compute = _histogram(*compute, _LATENCY_BUCKETS, model, registry)
        self._batch = _histogram(*batch, _BATCH_BUCKETS, model, registry)
        self._requests = Counter(
            "http_requests", "Requests, by the status of their answer", ["code"], registry=registry
        )
        self._errors = Counter(
            "http_errors", "Answers with status 400 or above", ["code"], registry=registry
        )
        self.queue_depth = Gauge(
            "model_queue_depth", "Instances that wait for the model", registry=registry
        )
        self.in_flight = Gauge(
            "http_requests_in_flight", "Requests that are not answered yet", registry=registry
        )
        self.ready = Gauge("model_ready", "1 when requests are answered", registry=registry)
        self.version = Gauge("model_version", "Version that is served", registry=registry)
        self.reload_failures = Counter(
            "model_reload_failures", "Newer exports that could not be taken up", registry=registry
        )
        self._by_code: dict[int, Any] = {}
        self._window = Window()

    def exposition(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self.registry)

    def answered(self, status: int, seconds: float) -> None:
        """Note the answer to a prediction."""
        self.counted(status)
        self._window.answered(status, seconds)
        if status < 400:
            self._latency.observe(seconds)

    def counted(self, status: int) -> None:
        """Note any answer."""
        counter = self._by_code.get(status)
        if counter is None:
            counter = self._by_code[status] = self._requests.labels(str(status))
        counter.inc()
        if status >= 400:
            self._errors.labels(str(status)).inc()

    def called(self, rows: int, seconds: float) -> None:
        """Note a call of the model; may come from another thread."""
        self._compute.observe(seconds)
        self._batch.observe(rows)
        self._window.called(rows)

    def take_window(self) -> dict[str, Any]:
        """Return the figures since the last time, and begin anew."""
        taken, self._window = self._window, Window()
        return taken.figures()


def _histogram(
    name: str, text: str, buckets: tuple[float, ...], model: str, registry: CollectorRegistry
) -> Histogram:
    whole = Histogram(name, text, ["model"], buckets=buckets, registry=registry)
    return whole.labels(model)


class Window:
    """What happened in a stretch of time."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seconds = array("d")
        self._errors: Tally[int] = Tally()
        self._answers = 0
        self._calls = 0
        self._rows = 0

    def answered(self, status: int, seconds: float) -> None:
        """Note the answer to a prediction."""
        self._answers += 1
        if status >= 400:
            self._errors[status] += 1
        elif len(self._seconds) < _MOST_KEPT:
            self._seconds.append(seconds)

    def called(self, rows: int) -> None:
        """Note a call of the model."""
        self._calls += 1
        self._rows += rows

    def figures(self) -> dict[str, Any]:
        """Return rates a second, latencies in seconds, and the mean batch; None is unknown."""
        length = max(time.monotonic() - self._began, 1e-3)
        p50, p99 = _percentiles(self._seconds)
        errors = sum(self._errors.values())
        return {
            "window_s": round(length, 3),
            "requests_per_second": round(self._answers / length, 3),
            "latency_p50_s": p50,
            "latency_p99_s": p99,
            "errors_per_second": {
                str(code): round(count / length, 3) for code, count in sorted(self._errors.items())
            },
            "error_fraction": round(errors / self._answers, 6) if self._answers else None,
            "batch_size_mean": round(self._rows / self._calls, 2) if self._calls else None,
        }


def _percentiles(seconds: array[float]) -> tuple[float | None, float | None]:
    if not seconds:
        return None, None
    values = np.sort(np.frombuffer(seconds, dtype=np.float64))

    def nearest_rank(share: float) -> float:
        return round(float(values[max(0, math.ceil(share * len(values)) - 1)]), 6)

    return nearest_rank(0.5), nearest_rank(0.99)
