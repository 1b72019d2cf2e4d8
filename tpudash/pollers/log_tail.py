"""The log of all nodes: one shared tail for what is new, listings for the past only.

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
from tpudash.pollers.log_archive import LogArchive
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
PAST: Final = timedelta(days=30)
PAGE_ENTRIES: Final = 1_000
PAST_PAGES: Final = 20
PAST_PAUSE_S: Final = 3.0
"""Older pages are read at leisure, so that the minute's listings last for others too."""
GAP: Final = timedelta(seconds=30)
"""Entries may arrive late, so the tail begins a little before the newest one that is known."""
HEARTBEAT_S: Final = 10.0
ENTRIES_AT_ONCE: Final = 50
"""Entries that are taken in before keys are heard again."""


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
        self._archive = LogArchive(store)
        self._wake = asyncio.Event()
        self._heard = asyncio.Event()
        self._failures = 0
        self._newest: datetime | None = None
        self._oldest: datetime | None = None
        self._pages_left = PAST_PAGES

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
        """Follow what is new and read the past beside it, until the tail ends or either fails."""
        tail = asyncio.create_task(self._take_tail(cloud), name="log tail")
        self._heard.clear()
        try:
            while not tail.done():
                if self._heard.is_set():
                    await self._look_back(cloud)
                await self._while_running(tail, PAST_PAUSE_S if self._pages_left else HEARTBEAT_S)
            await tail
        finally:
            tail.cancel()
            await asyncio.gather(tail, return_exceptions=True)

    async def _look_back(self, cloud: Cloud) -> None:
        """Say that the log is followed, and read a little more of the past."""
        self._alive()
        if self._pages_left:
            await self._read_older(cloud)
        for entries in await self._archive.missing(cloud):
            await self._take(entries)

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
        """Take in what comes; the gateway lists the past first, and bridges every gap."""
        # Without a timestamp in the filter, the service looks back for a day only.
        since = self._clock.now() - PAST if self._newest is None else self._newest - GAP
        tail = cloud.logging.tail(WORKERS_FILTER, since=since, backlog=PAGE_ENTRIES)
        async for batch in tail:
            await self._take(batch.entries, batch.suppressed, is_live=self._heard.is_set())
            self._heard.set()
            self._alive()

    async def _read_older(self, cloud: Cloud) -> None:
        """Read the next older page of the past."""
        start = self._clock.now() - PAST
        filter_ = f'{WORKERS_FILTER} AND timestamp>="{start.isoformat()}"'
        if self._oldest is not None:
            filter_ += f' AND timestamp<="{self._oldest.isoformat()}"'
        entries = await cloud.logging.list_entries(filter_, newest_first=True, limit=PAGE_ENTRIES)
        before = self._oldest
        # Those of the same moment stay in the order in which they were written.
        await self._take(entries[::-1])
        is_last = len(entries) < PAGE_ENTRIES or self._oldest == before
        self._pages_left = 0 if is_last else self._pages_left - 1

    async def _take(
        self, entries: Sequence[LogEntry], suppressed: int = 0, *, is_live: bool = False
    ) -> None:
        if not entries and not suppressed:
            return
        now = self._clock.now()
        newest = max((entry.timestamp for entry in entries), default=now)
        lag_s = max(0.0, (now - newest).total_seconds()) if is_live and entries else None
        for start in range(0, max(1, len(entries)), ENTRIES_AT_ONCE):
            some = tuple(entries[start : start + ENTRIES_AT_ONCE])
            self._store.apply(LogsArrived(some, 0 if start else suppressed, lag_s))
            self._on_entries(some)
            await asyncio.sleep(0)
        if entries:
            oldest = min(entry.timestamp for entry in entries)
            self._oldest = min(oldest, self._oldest or oldest)
            # A writer whose clock runs ahead must not make us skip the others' entries.
            newest = min(newest, now)
            self._newest = max(newest, self._newest or newest)


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)
