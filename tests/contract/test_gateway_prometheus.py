"""The gateway to Prometheus endpoints, against real ones over loopback and hostile answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tpudash.domain.serving import ServingEndpoint, quantile
from tpudash.errors import TpudashError, UnreachableError
from tpudash.gateways import prometheus
from tpudash.gateways.prometheus import PrometheusGateway, read_exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOW = datetime(2026, 12, 1, tzinfo=UTC)
GATEWAY = PrometheusGateway(lambda: NOW)


@asynccontextmanager
async def answering(*pieces: bytes, end: bool = True) -> AsyncIterator[ServingEndpoint]:
    """Serve these bytes to whoever asks, and end there or say no more."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if not end:
                await reader.read()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield ServingEndpoint("api", f"http://127.0.0.1:{port}/metrics")


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def exposition(latency: str = "model_latency_seconds", errors: str = "http_errors") -> bytes:
    registry = CollectorRegistry()
    times = Histogram(latency, "x", ["model"], buckets=(0.1, 1.0), registry=registry)
    for model in ("a", "b"):
        times.labels(model).observe(0.05)
    times.labels("a").observe(0.5)
    Counter(errors, "x", ["code"], registry=registry).labels("429").inc(3)
    Gauge("model_ready", "x", registry=registry).set(1)
    Gauge("unrelated", 'quotes " and \\ and\nlines', registry=registry).set(7)
    return generate_latest(registry)


async def test_what_a_real_client_writes_is_read() -> None:
    async with answering(http(exposition())) as endpoint:
        scrape = await GATEWAY.scrape(endpoint)
    assert scrape.buckets == {0.1: 2, 1.0: 3, float("inf"): 3}
    assert scrape.errors == {"429": 3}
    assert (scrape.ready, scrape.requests, scrape.time) == (1, None, NOW)
    assert quantile(scrape.buckets, 0.5) == pytest.approx(0.075)


async def test_metrics_of_other_names_are_read_by_the_settings() -> None:
    own = ServingEndpoint("x", "", latency="rpc_seconds", errors="rpc_failures_total")
    text = exposition("rpc_seconds", "rpc_failures").decode()
    scrape = read_exposition(text, own, NOW)
    assert (scrape.buckets[1.0], scrape.errors) == (3, {"429": 3})
    with pytest.raises(TpudashError, match="no histogram model_latency_seconds") as lacking:
        read_exposition(text, ServingEndpoint("x", ""), NOW)
    assert "latency = NAME" in lacking.value.hint


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http(b"", "503 Service Unavailable"), "it answers 503"),
        (http(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "it answers 302"),
        (http(b"\xff\x00\x1b[31m" * 100), "no histogram"),
        (http(b'model_latency_seconds_bucket{le="1"} x\n'), "no text of Prometheus"),
        (http(b"model_latency_seconds_bucket{le=\n"), "no text of Prometheus"),
        (b"garbage\r\n\r\n", "can't be read"),
    ],
)
async def test_what_is_no_exposition_is_told_in_a_few_words(answer: bytes, words: str) -> None:
    async with answering(answer) as endpoint:
        with pytest.raises(TpudashError, match=words):
            await GATEWAY.scrape(endpoint)


async def test_size_lines_and_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "TIMEOUT_S", 0.2)
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    async with answering(endless, end=False) as endpoint:
        with pytest.raises(UnreachableError, match="no answer within"):
            await GATEWAY.scrape(endpoint)
    monkeypatch.setattr(prometheus, "TIMEOUT_S", 20)
    async with answering(endless, *[chunk] * 20, end=False) as endpoint:
        with pytest.raises(TpudashError, match="larger than 8 MiB"):
            await GATEWAY.scrape(endpoint)
    many = "".join(f'model_latency_seconds_bucket{{le="{n}"}} 1\n' for n in range(6_000))
    with pytest.raises(TpudashError, match="more than 5000 lines"):
        read_exposition(many, endpoint, NOW)
    with pytest.raises(UnreachableError, match="nothing answers there"):
        await GATEWAY.scrape(ServingEndpoint("gone", "http://127.0.0.1:1/metrics"))


@given(st.text(alphabet='model_latency_seconds_bucket{le="1.5+Inf"} NaN\n#', max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    line = f"model_latency_seconds_bucket{text}\n"
    try:
        scrape = read_exposition(line, ServingEndpoint("x", ""), NOW)
    except TpudashError:
        return
    assert all(value == value for value in scrape.buckets.values())  # noqa: PLR0124
