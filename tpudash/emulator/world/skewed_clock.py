"""The cloud's own clock, which a fault may set wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tpudash.clock import Clock


class SkewedClock:
    """Another clock, a few seconds ahead or behind; durations are not touched.

    Args:
        clock: The right time.
        skew_s: Returns the seconds by which `now` is ahead.
    """

    def __init__(self, clock: Clock, skew_s: Callable[[], float]) -> None:
        self._clock = clock
        self._skew_s = skew_s

    def now(self) -> datetime:
        """Return the time that the cloud believes it is."""
        return self._clock.now() + timedelta(seconds=self._skew_s())

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        await self._clock.sleep(seconds)
