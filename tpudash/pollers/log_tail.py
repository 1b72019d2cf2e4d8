"""The log of all nodes: one shared tail for what is new, listings only for what was missed.

`entries.list` is limited to 60 calls a minute for a whole project, so nothing here lists at an
interval. Source: https://cloud.google.com/logging/quotas
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.errors import TpudashError
from tpudash.pollers.back_off import back_off
from tpudash.pollers.source import Reporter, wait_for_either
from tpudash.store.changes import LogsArrived
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from random import Random

    from tpudash.clock import Clock
    from tpudash.domain.log import LogEntry
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.link import Link
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

WORKERS_FILTER: Final = 'resource.type="tpu_worker"'
HISTORY_ENTRIES: Final = 1_000
GAP: Final = timedelta(seconds=30)
"""Entries may arrive late, so a listing after a loss begins a little before it."""
SECOND_LOOK_S: Final = 5.0
HEARTBEAT_S: Final = 10.0


class LogTail:
    """Follows the log for as long as the session lasts.

    Args:
        on_entries: Called with entries that arrived, after the store has them.
    """

    def __init__(
        self,
        link: Link,
        store: Store,
        clock: Clock,
        random: Random,
        on_entries: Callable[[Sequence[LogEntry]], None],
    ) -> None:
        self._link = link
        self._store = store
        self._clock = clock
        self._random = random
        self._on_entries = on_entries
        self._reporter = Reporter(store, clock, LOGS)
        self._wake = asyncio.Event()
        self._failures = 0
        self._newest: datetime | None = None

    def refresh_soon(self) -> None:
        """Try again at once if the tail is down; a tail that runs needs no refreshing."""
        self._wake.set()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            self._wake.clear()
            try:
                await self._follow(await self._link.cloud())
            except TpudashError as error:
                logger.info("log tail failed: %s", error)
                await self._fail(error)
            except Exception as error:
                logger.exception("log tail failed")
                await self._fail(error)
            wait = back_off(max(1, self._failures), self._random)
            await wait_for_either(self._wake, wait, self._clock)

    async def _fail(self, error: Exception) -> None:
        self._failures += 1
        self._reporter.failed(error, back_off(self._failures, self._random))
        await self._link.failed(error)

    async def _follow(self, cloud: Cloud) -> None:
        """Take in what was missed and then what is new, until the tail ends or fails."""
        tail = asyncio.create_task(self._take_tail(cloud), name="log tail")
        try:
            await self._catch_up(cloud)
            self._alive()
            # What came between the listing and the opening of the tail is only seen now.
            await self._while_running(tail, SECOND_LOOK_S)
            if not tail.done():
                await self._catch_up(cloud)
            while not tail.done():
                self._alive()
                await self._while_running(tail, HEARTBEAT_S)
            await tail
        finally:
            tail.cancel()
            await asyncio.gather(tail, return_exceptions=True)

    async def _while_running(self, tail: asyncio.Task[None], seconds: float) -> None:
        pause = asyncio.create_task(_sleep(self._clock, seconds), name="log tail pause")
        try:
            await asyncio.wait({tail, pause}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            await asyncio.gather(pause, return_exceptions=True)

    def _alive(self) -> None:
        self._failures = 0
        self._link.answered()
        self._reporter.answered(HEARTBEAT_S)

    async def _take_tail(self, cloud: Cloud) -> None:
        async for batch in cloud.logging.tail(WORKERS_FILTER):
            self._take(batch.entries, batch.suppressed)
            self._alive()

    async def _catch_up(self, cloud: Cloud) -> None:
        filter_ = WORKERS_FILTER
        if self._newest is None:
            # Without a timestamp in the filter, the service looks back for a day only.
            start = self._clock.now() - timedelta(days=30)
        else:
            start = self._newest - GAP
        filter_ += f' AND timestamp>="{start.isoformat()}"'
        entries = await cloud.logging.list_entries(
            filter_, newest_first=True, limit=HISTORY_ENTRIES
        )
        self._take(entries, 0)

    def _take(self, entries: Sequence[LogEntry], suppressed: int) -> None:
        if not entries and not suppressed:
            return
        self._store.apply(LogsArrived(tuple(entries), suppressed))
        if entries:
            newest = max(entry.timestamp for entry in entries)
            # A writer whose clock runs ahead must not make us skip the others' entries.
            newest = min(newest, self._clock.now())
            self._newest = max(newest, self._newest or newest)
            self._on_entries(entries)


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
