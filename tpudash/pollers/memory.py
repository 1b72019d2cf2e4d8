"""Keeps the history every few seconds, and shows at the start what earlier sessions saw."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

from tpudash.store.changes import CurvesRemembered, PastRead, SeriesRead

if TYPE_CHECKING:
    from tpudash.clock import Clock
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.changes import ChangeSet
    from tpudash.store.history import History
    from tpudash.store.history_collector import Collector
    from tpudash.store.history_reading import Seen
    from tpudash.store.store import Store

MEMORY: Final = "memory"
INTERVAL_S: Final = 5.0
TIDY_EVERY_S: Final = 3_600.0
SHOWN: Final = timedelta(hours=24)
PAST_SHOWN: Final = timedelta(days=7)
MOST_WAITING: Final = 60


class MemorySource:
    """Writes in a thread what the collector found; what can't be written waits, for a while.

    Args:
        project: The project, where it is known without a connection.
    """

    name = MEMORY
    needs_cloud: Literal[False] = False

    def __init__(
        self,
        store: Store,
        clock: Clock,
        history: History,
        collector: Collector,
        project: str | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._history = history
        self._collector = collector
        self._project = project
        self._is_read = False
        self._waiting: list[Seen] = []
        self._tidy_at = clock.monotonic() + INTERVAL_S
        store.subscribe(self._notice)

    def _notice(self, changes: ChangeSet) -> None:
        self._collector.notice(changes, self._clock.now())

    async def poll(self, cloud: Cloud | None) -> None:
        """Read once what is remembered, as soon as that can be done, then write what is new.

        Raises:
            ConfigurationError: The file can't be used; what waits is written later.
        """
        project = cloud.project if cloud is not None else self._project
        if project is None:
            return
        if not self._is_read:
            await self._remember(project)
            self._is_read = True
        seen = self._collector.take(self._clock.now())
        if seen.costs:
            self._store.apply(PastRead(costs=seen.costs))
        if seen:
            self._waiting = [*self._waiting, seen][-MOST_WAITING:]
        while self._waiting:
            await asyncio.to_thread(self._history.write, project, self._waiting[0])
            self._waiting.pop(0)
        if self._clock.monotonic() >= self._tidy_at:
            self._tidy_at = self._clock.monotonic() + TIDY_EVERY_S
            await asyncio.to_thread(self._history.tidy, self._clock.now())

    async def _remember(self, project: str) -> None:
        now = self._clock.now()
        seen = await asyncio.to_thread(self._history.read, project, now - SHOWN)
        if seen.series:
            self._store.apply(SeriesRead(seen.series, now))
            self._collector.leave_out(seen.series)
        if seen.curves:
            self._store.apply(CurvesRemembered(seen.curves))
        past = await asyncio.to_thread(self._history.read_past, project, now - PAST_SHOWN)
        if past:
            self._store.apply(PastRead(past.states, past.events, past.costs))

    def interval_s(self) -> float:
        """Return seconds until the next writing."""
        return INTERVAL_S
