"""Time that moves on only when everybody waits, to the next moment that somebody waits for."""

from __future__ import annotations

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
START = datetime(2026, 12, 1, 8, tzinfo=UTC)


class VirtualClock:
    """`Clock` for many tasks at once."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        moment = self.elapsed_s + max(0.0, seconds)
        heapq.heappush(self._sleepers, (moment, next(self._order), future))
        await future

    async def run(self, work: Coroutine[Any, Any, T], *, within_s: float) -> T:
        """Run something to its end, moving time on whenever nobody can do anything before."""
        task = asyncio.create_task(work)
        try:
            while not task.done():
                await self._until_all_wait(task)
                if task.done():
                    break
                assert self._sleepers, "everybody waits, and nobody for time"
                moment, _, future = heapq.heappop(self._sleepers)
                self.elapsed_s = max(self.elapsed_s, moment)
                assert self.elapsed_s < within_s, f"not over after {within_s:.0f} s"
                if not future.done():
                    future.set_result(None)
            return task.result()
        finally:
            task.cancel()

    async def _until_all_wait(self, task: asyncio.Task[Any]) -> None:
        loop: Any = asyncio.get_running_loop()
        await asyncio.sleep(0)
        while loop._ready and not task.done():  # noqa: ASYNC110  the loop's own queue has no event
            await asyncio.sleep(0)
