"""A clock that a test moves by hand."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Time stands still until `advance` is called."""

    def __init__(self) -> None:
        self._now = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
        self._seconds = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the moment at which the hands stand."""
        return self._now + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Return the seconds that the clock was advanced by."""
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by so much."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._seconds + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time on, waking who sleeps in the order of their alarms."""
        await settle()
        end = self._seconds + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            self._seconds, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await settle()
        self._seconds = end


async def settle() -> None:
    """Let every task run as far as it can without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)
