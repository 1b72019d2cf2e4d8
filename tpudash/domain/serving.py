"""Models that are served: their figures, whether a run's events or a Prometheus endpoint told."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

KeyT = TypeVar("KeyT")
DEFAULT_LATENCY: Final = "model_latency_seconds"
DEFAULT_ERRORS: Final = "http_errors_total"


class ServingKind(StrEnum):
    """Who tells the figures."""

    RUN = "run"
    ENDPOINT = "endpoint"


@dataclass(frozen=True, slots=True)
class ServingEndpoint:
    """A Prometheus endpoint that is named in the settings.

    Attributes:
        latency: Name of its histogram of latencies in seconds.
        errors: Name of its counter of errors, with a label `code`.
    """

    name: str
    url: str
    latency: str = DEFAULT_LATENCY
    errors: str = DEFAULT_ERRORS


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """From where on a model is served badly.

    Attributes:
        p99_s: Longest 99th percentile of latency.
        error_share: Largest share of requests that are answered with an error.
    """

    p99_s: float = 1.0
    error_share: float = 0.01


@dataclass(frozen=True, slots=True)
class ServingFigures:
    """How a model was served over a stretch of time that ended at `time`; None is unknown.

    Attributes:
        name: Of the run or the endpoint.
        is_ready: Whether it answers requests.
        state: Its own word for what it does, such as `draining`.
        problem: Why there are no figures, or "".
        errors_per_second: By status code.
        error_share: Of all requests.
        batch_size: Mean instances in a call of the model.
    """

    kind: ServingKind
    name: str
    time: datetime
    is_ready: bool | None = None
    state: str = ""
    model: str = ""
    version: str = ""
    problem: str = ""
    requests_per_second: float | None = None
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    errors_per_second: Mapping[str, float] = field(default_factory=dict)
    error_share: float | None = None
    batch_size: float | None = None
    queue_depth: float | None = None
    in_flight: float | None = None

    @property
    def key(self) -> str:
        """What tells it from every other target."""
        return f"{self.kind}:{self.name}"

    def age(self, now: datetime) -> timedelta:
        """Return how old the figures are."""
        return now - self.time


@dataclass(frozen=True, slots=True)
class Scrape:
    """What a Prometheus endpoint counts, at one moment; None where it does not.

    Attributes:
        buckets: Cumulative counts of the latency histogram, by upper bound in seconds.
        errors: Errors by status code, since it began.
        requests: All requests, since it began.
    """

    time: datetime
    buckets: Mapping[float, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    requests: float | None = None
    batch_sum: float | None = None
    batch_count: float | None = None
    queue_depth: float | None = None
    in_flight: float | None = None
    ready: float | None = None
    version: str = ""


def figures_between(name: str, before: Scrape | None, after: Scrape) -> ServingFigures:
    """Return an endpoint's figures between two scrapes; rates need both."""
    now_only = ServingFigures(
        ServingKind.ENDPOINT,
        name,
        after.time,
        is_ready=None if after.ready is None else after.ready >= 1,
        version=after.version,
        queue_depth=after.queue_depth,
        in_flight=after.in_flight,
    )
    seconds = (after.time - before.time).total_seconds() if before else 0.0
    if before is None or seconds <= 0:
        return now_only
    # Whatever counts backwards was started anew, and has counted since then only.
    began = before if _total(after.buckets) >= _total(before.buckets) else Scrape(before.time)
    buckets = _grown(began.buckets, after.buckets)
    errors = {
        code: count / seconds
        for code, count in sorted(_grown(began.errors, after.errors).items())
        if count > 0
    }
    failed = sum(errors.values())
    rate = _total(buckets) / seconds + failed
    if after.requests is not None:
        rate = max(0.0, after.requests - (began.requests or 0.0)) / seconds
    calls = (after.batch_count or 0.0) - (began.batch_count or 0.0)
    rows = (after.batch_sum or 0.0) - (began.batch_sum or 0.0)
    return replace(
        now_only,
        requests_per_second=rate,
        latency_p50_s=quantile(buckets, 0.5),
        latency_p99_s=quantile(buckets, 0.99),
        errors_per_second=errors,
        error_share=min(1.0, failed / rate) if rate > 0 else None,
        batch_size=rows / calls if calls > 0 else None,
    )


def _grown(before: Mapping[KeyT, float], after: Mapping[KeyT, float]) -> dict[KeyT, float]:
    return {key: max(0.0, count - before.get(key, 0.0)) for key, count in after.items()}


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """Return a quantile of a histogram as Prometheus' `histogram_quantile` does; None if empty.

    Args:
        buckets: Cumulative counts by upper bound, the last of which is infinite.
        share: Which quantile, from 0 to 1.
    """
    total = _total(buckets)
    if total <= 0:
        return None
    rank = share * total
    steps = [(0.0, 0.0), *sorted(buckets.items())]
    for (low, below), (high, upto) in pairwise(steps):
        if upto >= rank:
            if not math.isfinite(high):
                return low
            return low + (high - low) * (rank - below) / (upto - below) if upto > below else high
    return steps[-1][0] if math.isfinite(steps[-1][0]) else None


def _total(buckets: Mapping[float, float]) -> float:
    return max(buckets.values(), default=0.0)
