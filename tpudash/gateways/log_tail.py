"""A log tail that outlives its streams: opened anew without a gap and without a doublet.

One TailLogEntries stream ends after an hour at the latest, and breaks with the network. So each
opening is followed by a listing from the newest entry seen, and by a second one a little later:
entries may be written after the first listing and before the service has begun to follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.log import LogEntry, Severity
from tpudash.errors import TpudashError
from tpudash.gateways.convert import to_datetime
from tpudash.gateways.convert_log import entry_of, identity_of
from tpudash.gateways.log_filters import all_of, since_filter
from tpudash.gateways.paging import unreadable
from tpudash.gateways.protocols import TailBatch
from tpudash.gateways.retry import RetryRules
from tpudash.gateways.status import foreign_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime
    from random import Random

    from tpudash.clock import Clock
    from tpudash.gateways.logging import GoogleLogging

logger = logging.getLogger(__name__)

STREAM_LIFE_S: Final = 3_000.0
SILENCE_S: Final = 300.0
"""A stream that says nothing for so long may be half dead, and is opened anew."""

SECOND_LOOK_S: Final = 3.0
OVERLAP: Final = timedelta(seconds=60)
"""Entries may arrive late, so a listing begins this much before the newest entry seen."""

MOST_MISSED: Final = 20_000
"""Entries that are listed after a loss; what is missing beyond them is told in their place."""

REMEMBERED: Final = 50_000
FAILURES_IN_A_ROW: Final = 4
SHORT_LIFE_S: Final = 30.0
"""Streams that end sooner are opened ever more rarely, since each opening costs two listings."""

_DEADLINE_S: Final = STREAM_LIFE_S + 60.0
_RULES: Final = RetryRules(first_delay_s=0.4, longest_delay_s=30.0)
_PASSING: Final = frozenset(
    {
        ErrorClass.INTERNAL,
        ErrorClass.CONNECT,
        ErrorClass.RATE_LIMIT,
        ErrorClass.UNKNOWN_OUTCOME,
        ErrorClass.PREEMPTED,
    }
)


class StreamOverError(Exception):
    """A stream ended without a fault, or has to be opened anew."""


class Tail:
    """One endless tail of one filter.

    Args:
        since: Entries before this time are not wanted.
        backlog: At most so many entries, the newest, are listed before the first stream is read.
    """

    def __init__(
        self,
        gateway: GoogleLogging,
        clock: Clock,
        random: Random,
        filter_: str,
        since: datetime,
        backlog: int = MOST_MISSED,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._random = random
        self._filter = filter_
        self._since = since
        self._backlog = backlog
        self._newest = since
        self._is_new = True
        self._seen: OrderedDict[tuple[Any, ...], None] = OrderedDict()
        self._gap: datetime | None = None

    async def batches(self) -> AsyncIterator[TailBatch]:
        """Yield what arrives; the first batch comes once the past was listed, be it empty.

        Raises:
            TpudashError: A refusal that will stay, or several faults in a row.
        """
        failures = ended = 0
        while True:
            began = self._clock.monotonic()
            try:
                async with self._gateway.open_tails(), self._streaming() as batches:
                    async for batch in batches:
                        failures = 0
                        yield batch
            except StreamOverError as over:
                logger.debug("the log tail is opened anew: %s", over)
                is_short = self._clock.monotonic() - began < SHORT_LIFE_S
                ended = ended + 1 if is_short else 1
                pause_s = _RULES.delay_s(ended, ErrorClass.INTERNAL, self._random)
            except TpudashError as error:
                failures += 1
                kind = error.failure.error_class if error.failure else ErrorClass.UNCLASSIFIED
                if kind not in _PASSING or failures >= FAILURES_IN_A_ROW:
                    raise
                logger.info("the log tail is opened anew: %s", error)
                pause_s = _RULES.delay_s(failures, kind, self._random)
            await self._clock.sleep(pause_s)

    @asynccontextmanager
    async def _streaming(self) -> AsyncIterator[AsyncIterator[TailBatch]]:
        stream = _Stream(self._gateway, self._clock, self._filter)
        try:
            yield self._one_stream(stream)
        finally:
            await stream.close()

    async def _one_stream(self, stream: _Stream) -> AsyncIterator[TailBatch]:
        found = self._fresh(await self._missed(), 0)
        if found or self._is_new:
            self._is_new = False
            yield found or TailBatch(())
        look_due: float | None = self._clock.monotonic() + SECOND_LOOK_S
        while True:
            wait_s = None if look_due is None else look_due - self._clock.monotonic()
            answer = await stream.next(wait_s)
            if answer is _Event.OPENED:
                look_due = self._clock.monotonic() + SECOND_LOOK_S
                continue
            if answer is _Event.NOTHING:
                look_due = None
                batch = self._fresh(await self._missed(), 0)
            else:
                suppressed = sum(info.suppressed_count for info in answer.suppression_info)
                batch = self._fresh(answer.entries, suppressed)
            if batch:
                yield batch

    async def _missed(self) -> list[Any]:
        start = max(self._since, self._newest - OVERLAP)
        filter_ = all_of(self._filter, since_filter(start))
        limit = self._backlog if self._is_new else MOST_MISSED
        found = await self._gateway.list_raw(filter_, newest_first=True, limit=limit)
        found.reverse()
        self._gap = to_datetime(found[0].timestamp) if len(found) >= MOST_MISSED else None
        return found

    def _fresh(self, messages: Iterable[Any], suppressed: int) -> TailBatch | None:
        """Return what was not given yet; None if there is nothing to tell."""
        entries = []
        now = self._clock.now()
        for message in messages:
            identity = identity_of(message)
            if identity in self._seen:
                continue
            self._seen[identity] = None
            entries.append(entry_of(message))
            # A writer whose clock runs ahead must not make us skip the others' entries.
            time = to_datetime(message.timestamp)
            if time is not None and self._newest < time <= now:
                self._newest = time
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        gap, self._gap = self._gap, None
        if gap is not None and entries:
            entries.insert(0, _told_gap(gap))
        if not entries and not suppressed:
            return None
        return TailBatch(tuple(entries), suppressed)


def _told_gap(time: datetime) -> LogEntry:
    """Return an entry of our own that stands where others were not read."""
    return LogEntry(
        time,
        Severity.WARNING,
        f"tpudash: entries before this one were not read: more than {MOST_MISSED:,} came "
        "while the log was not followed",
        insert_id=f"tpudash-gap-{time.isoformat()}",
        stream="tpudash",
    )


class _Event(Enum):
    """What a stream may tell besides entries."""

    OPENED = auto()
    NOTHING = auto()


class _Stream:
    """One TailLogEntries call, read by a task of its own so that a wait for it can end early.

    It begins to open at once. Opening takes until the service's first sign of life, which may be
    the first entry.
    """

    def __init__(self, gateway: GoogleLogging, clock: Clock, filter_: str) -> None:
        self._gateway = gateway
        self._clock = clock
        self._filter = filter_
        self._call: Any = None
        self._close_due = clock.monotonic() + STREAM_LIFE_S
        self._task: asyncio.Task[Any] | None = asyncio.create_task(
            self._open(), name="open the log tail"
        )

    async def _open(self) -> _Event:
        self._call = await self._gateway.open_stream(self._requests(), _DEADLINE_S)
        return _Event.OPENED

    async def next(self, wait_s: float | None) -> Any:
        """Return the next answer, OPENED, or NOTHING when none came within the wait.

        Raises:
            StreamOverError: The stream ended, or has lived or been silent for long enough.
            TpudashError: It broke.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._call.read(), name="read the log tail")
        left_s = self._close_due - self._clock.monotonic()
        pause_s = max(0.0, min(SILENCE_S, left_s) if wait_s is None else wait_s)
        await self._first_of(self._task, pause_s)
        if not self._task.done():
            if wait_s is None:
                raise StreamOverError("its time is over")
            return _Event.NOTHING
        task, self._task = self._task, None
        try:
            answer = task.result()
        except asyncio.CancelledError:
            raise StreamOverError("it was cancelled") from None
        except foreign_errors() as error:
            raise self._gateway.caller.translated(error, "tail the log") from error
        if answer is _Event.OPENED:
            return answer
        if answer is None:
            raise self._gateway.caller.translated(unreadable(), "tail the log")
        if not hasattr(answer, "entries"):
            raise StreamOverError("the service ended it")
        return answer

    async def close(self) -> None:
        if self._call is not None:
            self._call.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _first_of(self, reading: asyncio.Task[Any], seconds: float) -> None:
        async def pause() -> None:
            await self._clock.sleep(seconds)

        pausing = asyncio.create_task(pause(), name="log tail pause")
        try:
            await asyncio.wait({reading, pausing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pausing.cancel()
            await asyncio.gather(pausing, return_exceptions=True)

    async def _requests(self) -> AsyncIterator[Any]:
        """Ask once, and keep the asking side open: the service ends a stream that it is not on."""
        from google.cloud.logging_v2 import types

        yield types.TailLogEntriesRequest(
            resource_names=[self._gateway.resource],
            filter=self._filter,
            buffer_window={"seconds": 1},
        )
        await asyncio.get_running_loop().create_future()
