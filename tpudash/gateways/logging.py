"""Cloud Logging, reading.

`entries.list` is limited to 60 calls a minute and project, so live entries come from the tail.
Source: google/logging/v2/logging.proto, https://cloud.google.com/logging/quotas
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from tpudash.gateways.clients import ClientKind
from tpudash.gateways.convert_log import entry_of
from tpudash.gateways.log_tail import MOST_MISSED, Tail
from tpudash.gateways.pace import Spend
from tpudash.gateways.paging import all_pages, readable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from random import Random

    from tpudash.clock import Clock
    from tpudash.domain.log import LogEntry
    from tpudash.gateways.clients import Clients
    from tpudash.gateways.protocols import TailBatch
    from tpudash.gateways.retry import Caller

LIST_S: Final = 20.0
PAGE_SIZE: Final = 1_000
EMPTY_PAGES: Final = 20
"""Pages without an entry after which a search is given up: each one costs quota."""


class GoogleLogging:
    """`LoggingGateway` over Google's generated client."""

    def __init__(
        self, clients: Clients, caller: Caller, project: str, clock: Clock, random: Random
    ) -> None:
        self._clients = clients
        self._caller = caller
        self._resource = f"projects/{project}"
        self._clock = clock
        self._random = random

    async def list_entries(
        self, filter_: str, *, newest_first: bool = False, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        """List entries that match, in order of their timestamps."""
        messages = await self.list_raw(filter_, newest_first=newest_first, limit=limit)
        return tuple(entry_of(message) for message in messages)

    async def list_raw(self, filter_: str, *, newest_first: bool, limit: int) -> list[Any]:
        """List entries as Google's own messages, at most `limit`."""
        if limit <= 0:
            return []
        from tpudash.gateways.log_calls import list_page

        channel = (await self._clients.get(ClientKind.LOGS)).transport.grpc_channel
        request = {
            "resource_names": [self._resource],
            "filter": filter_,
            "order_by": "timestamp desc" if newest_first else "timestamp asc",
            "page_size": min(limit, PAGE_SIZE),
        }

        async def page(token: str, timeout_s: float) -> Any:
            asked = {**request, "page_token": token}
            return await readable(list_page(channel, asked, timeout_s))

        found: list[Any] = []
        empty = 0
        pages = all_pages(
            self._caller, "list log entries", page, timeout_s=LIST_S, spend=Spend.LOG_LIST
        )
        try:
            async for answer in pages:
                found.extend(answer.entries)
                empty = 0 if answer.entries else empty + 1
                if len(found) >= limit or empty >= EMPTY_PAGES:
                    break
        finally:
            await pages.aclose()
        return found[:limit]

    def tail(
        self, filter_: str, *, since: datetime | None = None, backlog: int = MOST_MISSED
    ) -> AsyncIterator[TailBatch]:
        """Stream entries as they arrive, until the caller stops or an error is raised.

        The stream is opened anew before its hour is over and after faults; what was written
        meanwhile is listed, and nothing is given twice.

        It begins with the entries of the time `since` and later, at most `backlog` of them;
        without one, with now. The first batch may be empty: it says that the log can be read.
        """
        start = since or self._clock.now()
        return Tail(self, self._clock, self._random, filter_, start, backlog).batches()

    def open_tails(self) -> AbstractAsyncContextManager[None]:
        """Hold one of the streams that a project may have open.

        Raises:
            CapacityError: There are as many as there may be.
        """
        pace = self._caller.pace
        return nullcontext() if pace is None else pace.tail()

    async def open_stream(self, requests: AsyncIterator[Any], timeout_s: float) -> Any:
        """Open one TailLogEntries stream; the caller reads and closes it."""
        from tpudash.gateways.log_calls import open_tail

        channel = (await self._clients.get(ClientKind.LOGS)).transport.grpc_channel
        return await open_tail(channel, requests, timeout_s)

    @property
    def resource(self) -> str:
        """What is read: `projects/P`."""
        return self._resource

    @property
    def caller(self) -> Caller:
        """What translates this gateway's errors."""
        return self._caller
