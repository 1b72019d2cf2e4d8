"""The logs of several projects as one: what one of them refuses hides none of the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import LogEntry, Severity
from tpudash.errors import TpudashError
from tpudash.gateways.log_tail import MOST_MISSED
from tpudash.gateways.protocols import TailBatch
from tpudash.gateways.several import asked_of_each

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from datetime import datetime

    from tpudash.clock import Clock
    from tpudash.gateways.protocols import LoggingGateway

AGAIN_S: Final = 60.0
"""How long a project's tail is left alone that was refused, while others go on."""


class SeveralLogging:
    """`LoggingGateway` over those of several projects, merged by time.

    Where a project can't be read, an entry of our own says so in its place.
    """

    def __init__(self, gateways: Mapping[str, LoggingGateway], clock: Clock) -> None:
        self._gateways = dict(gateways)
        self._clock = clock

    async def list_entries(
        self, filter_: str, *, newest_first: bool = False, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        """List entries of all projects that match, in order of their timestamps.

        Raises:
            TpudashError: No project could be read; what the first of them said.
        """
        answers = await asked_of_each(
            self._gateways,
            lambda one: one.list_entries(filter_, newest_first=newest_first, limit=limit),
        )
        found: list[LogEntry] = []
        told: list[LogEntry] = []
        for project, answer in answers.items():
            if isinstance(answer, TpudashError):
                told.append(self._told(project, answer))
            else:
                found.extend(answer)
        found.sort(key=lambda entry: entry.timestamp, reverse=newest_first)
        found = found[:limit]
        return tuple([*told, *found] if newest_first else [*found, *told])

    async def tail(
        self, filter_: str, *, since: datetime | None = None, backlog: int = MOST_MISSED
    ) -> AsyncIterator[TailBatch]:
        """Stream entries of all projects as they arrive.

        Raises:
            TpudashError: No project can be followed; what the first of them said.
        """
        arrived: asyncio.Queue[tuple[str, TailBatch | TpudashError]] = asyncio.Queue(maxsize=8)

        async def follow(project: str, gateway: LoggingGateway) -> None:
            start, most = since, backlog
            while True:
                try:
                    async for batch in gateway.tail(filter_, since=start, backlog=most):
                        await arrived.put((project, batch))
                except TpudashError as error:
                    start, most = self._clock.now(), MOST_MISSED
                    await arrived.put((project, error))
                await self._clock.sleep(AGAIN_S)

        tasks = [
            asyncio.create_task(follow(project, gateway), name=f"log of {project}")
            for project, gateway in self._gateways.items()
        ]
        refused: dict[str, TpudashError] = {}
        try:
            while len(refused) < len(tasks):
                project, news = await arrived.get()
                if not isinstance(news, TpudashError):
                    refused.pop(project, None)
                    yield news
                    continue
                is_new = project not in refused
                refused[project] = news
                if is_new and len(refused) < len(tasks):
                    yield TailBatch((self._told(project, news),))
            raise next(iter(refused.values()))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _told(self, project: str, error: TpudashError) -> LogEntry:
        now = self._clock.now()
        return LogEntry(
            now,
            Severity.WARNING,
            f"tpudash: the log of project {project} can't be read: {error}",
            insert_id=f"tpudash-{project}-{now.isoformat()}",
            stream="tpudash",
        )
