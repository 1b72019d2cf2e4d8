"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Sleepers wake when the test moves time past their moment."""

    def __init__(self) -> None:
        self._start = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._elapsed + seconds, future))
        await future

    @property
    def next_wake_in(self) -> float | None:
        """Seconds until the first sleeper wakes, or None."""
        due = [at for at, future in self._sleepers if not future.done()]
        return min(due) - self._elapsed if due else None

    async def advance(self, seconds: float) -> None:
        """Move time, waking sleepers in their order and letting each go on."""
        end = self._elapsed + seconds
        while True:
            self._sleepers = [one for one in self._sleepers if not one[1].done()]
            due = sorted((one for one in self._sleepers if one[0] <= end), key=lambda one: one[0])
            if not due:
                break
            self._elapsed = max(self._elapsed, due[0][0])
            due[0][1].set_result(None)
            await settle()
        self._elapsed = end
        await settle()


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(50):
        await asyncio.sleep(0)
