"""Injectable time: everything that asks what time it is asks a `Clock`."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time, monotonic time and sleep, replaceable as one in tests."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps, from an arbitrary start."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds of this clock's time."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running event loop."""
        await asyncio.sleep(seconds)
