"""Gateways that answer, fail or hang as a test tells them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tpudash.domain.node import Maintenance, Node, NodeListing
from tpudash.domain.request import RequestListing
from tpudash.gateways.protocols import Cloud, TailBatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import datetime, timedelta

    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries


@dataclass
class FakeWorld:
    """What the fake gateways say, and how often they were asked.

    Attributes:
        failing: Errors by method name; raised instead of an answer.
        hanging: Names of methods that never answer.
        pages: Calls that a list takes.
        page_takes: Waits as long as one of them takes.
    """

    nodes: tuple[Node, ...] = ()
    maintenance: dict[str, Maintenance] = field(default_factory=dict)
    history: tuple[LogEntry, ...] = ()
    failing: dict[str, Exception] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    metrics_asked: list[str] = field(default_factory=list)
    tails: list[asyncio.Queue[TailBatch | Exception | None]] = field(default_factory=list)
    tails_since: list[datetime | None] = field(default_factory=list)
    closed: int = 0
    pages: int = 1
    page_takes: Callable[[], Awaitable[None]] | None = None

    async def list(self, method: str) -> None:
        for _ in range(self.pages):
            await self.answer(method)
            if self.page_takes is not None:
                await self.page_takes()

    async def answer(self, method: str) -> None:
        self.calls[method] += 1
        if method in self.hanging:
            await asyncio.get_running_loop().create_future()
        if method in self.failing:
            raise self.failing[method]


class FakeTpu:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def list_nodes(self, location: str = "-") -> NodeListing:
        await self._world.list("list_nodes")
        return NodeListing(self._world.nodes)

    async def list_maintenance(self, location: str = "-") -> dict[str, Maintenance]:
        await self._world.answer("list_maintenance")
        return dict(self._world.maintenance)

    async def list_requests(self, location: str = "-") -> RequestListing:
        await self._world.list("list_requests")
        return RequestListing(())


class FakeMonitoring:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def list_series(
        self, metric: str, *, start: datetime, end: datetime, period: timedelta
    ) -> tuple[MetricSeries, ...]:
        self._world.metrics_asked.append(metric)
        await self._world.answer("list_series")
        return ()


class FakeLogging:
    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def list_entries(
        self, filter_: str, *, newest_first: bool = False, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        await self._world.answer("list_entries")
        return self._world.history

    async def tail(
        self, filter_: str, *, since: datetime | None = None, backlog: int = 5000
    ) -> AsyncIterator[TailBatch]:
        await self._world.answer("tail")
        self._world.tails_since.append(since)
        queue: asyncio.Queue[TailBatch | Exception | None] = asyncio.Queue()
        self._world.tails.append(queue)
        history = self._world.history
        yield TailBatch(tuple(one for one in history if since and one.timestamp >= since))
        while (said := await queue.get()) is not None:
            if isinstance(said, Exception):
                raise said
            yield said


class FakeConnector:
    """Connects to a fake world, unless the world says otherwise."""

    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def cloud(self) -> Cloud:
        await self._world.answer("connect")
        missing = cast("Any", None)
        return Cloud(
            project="demo",
            tpu=cast("Any", FakeTpu(self._world)),
            monitoring=FakeMonitoring(self._world),
            logging=FakeLogging(self._world),
            billing=missing,
            bucket=missing,
            is_emulator=True,
        )

    async def close(self) -> None:
        self._world.closed += 1
