"""Reads what a server counts in Prometheus' text format; it only ever asks by GET.

What answers may be anything: its size, its time and its lines are bounded, and only lines of the
wanted metrics are parsed.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tpudash.domain.serving import Scrape
from tpudash.errors import TpudashError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from prometheus_client.samples import Sample

    from tpudash.domain.serving import ServingEndpoint

TIMEOUT_S: Final = 5.0
MAX_BYTES: Final = 8 * 2**20
MAX_LINES: Final = 5_000
_LONGEST_LINE: Final = 2_000
_REQUESTS: Final = "http_requests_total"
_BATCH: Final = "model_batch_size"
_QUEUE: Final = "model_queue_depth"
_IN_FLIGHT: Final = "http_requests_in_flight"
_READY: Final = "model_ready"
_VERSION: Final = "model_version"
_HEADERS: Final = {"Accept": "text/plain; version=0.0.4"}


class PrometheusGateway:
    """Scrapes endpoints, each over a connection of its own.

    Args:
        now: Returns the present time.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    async def scrape(self, endpoint: ServingEndpoint) -> Scrape:
        """Return what an endpoint counts now.

        Raises:
            UnreachableError: It does not answer in time, or not with 200.
            TpudashError: What it answers is too large, no such text, or lacks the latencies.
        """
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=_HEADERS) as session,
                session.get(endpoint.url, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise UnreachableError(f"it answers {answer.status}")
                body = await _bounded(answer.content)
        except TimeoutError as error:
            raise UnreachableError(f"no answer within {TIMEOUT_S:g} s") from error
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError("nothing answers there") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            name = type(error).__name__
            raise UnreachableError("its answer can't be read", detail=name) from error
        time = self._now()
        return await asyncio.to_thread(read_exposition, body, endpoint, time)


async def _bounded(stream: aiohttp.StreamReader) -> str:
    chunks, size = [], 0
    async for chunk in stream.iter_chunked(65_536):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise TpudashError(f"its answer is larger than {MAX_BYTES // 2**20} MiB")
    return b"".join(chunks).decode("utf-8", "replace")


def read_exposition(text: str, endpoint: ServingEndpoint, time: datetime) -> Scrape:
    """Return what a text in Prometheus' format counts.

    Raises:
        TpudashError: It is no such text, or has no histogram of the endpoint's name.
    """
    errors = endpoint.errors.removesuffix("_total")
    wanted = (endpoint.latency, errors, _REQUESTS, _BATCH, _QUEUE, _IN_FLIGHT, _READY, _VERSION)
    lines = [
        line for line in text.splitlines() if line.startswith(wanted) and len(line) <= _LONGEST_LINE
    ]
    if len(lines) > MAX_LINES:
        raise TpudashError(f"more than {MAX_LINES} lines of its answer would have to be read")
    try:
        families = text_string_to_metric_families("\n".join(lines) + "\n")
        samples = [sample for family in families for sample in family.samples]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise TpudashError("its answer is no text of Prometheus") from error
    return _scrape(samples, endpoint, time)


def _scrape(samples: Iterable[Sample], endpoint: ServingEndpoint, time: datetime) -> Scrape:
    buckets: dict[float, float] = {}
    errors: dict[str, float] = {}
    totals: dict[str, float] = {}
    for name, labels, value in ((one.name, one.labels, one.value) for one in samples):
        if not math.isfinite(value):
            continue
        if name == f"{endpoint.latency}_bucket":
            bound = _number(labels.get("le", ""))
            if bound is not None:
                buckets[bound] = buckets.get(bound, 0.0) + value
        elif name in {endpoint.errors, f"{endpoint.errors}_total"}:
            code = labels.get("code") or labels.get("status") or "all"
            errors[code[:8]] = errors.get(code[:8], 0.0) + value
        else:
            totals[name] = totals.get(name, 0.0) + value
    if not buckets:
        raise TpudashError(
            f"it has no histogram {endpoint.latency}",
            hint="name its own in the settings: latency = NAME",
        )
    version = totals.get(_VERSION)
    return Scrape(
        time,
        buckets,
        errors,
        requests=totals.get(_REQUESTS),
        batch_sum=totals.get(f"{_BATCH}_sum"),
        batch_count=totals.get(f"{_BATCH}_count"),
        queue_depth=totals.get(_QUEUE),
        in_flight=totals.get(_IN_FLIGHT),
        ready=totals.get(_READY),
        version="" if version is None else f"{version:.0f}",
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value
