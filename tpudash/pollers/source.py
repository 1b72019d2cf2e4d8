"""One source of facts, asked again and again; a fault in it stays in it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, runtime_checkable

from tpudash.domain.failure import ErrorClass
from tpudash.errors import TpudashError, UnreachableError
from tpudash.pollers.back_off import back_off, jittered
from tpudash.store.changes import SourceReported
from tpudash.store.snapshot import SourceState, SourceStatus

if TYPE_CHECKING:
    from random import Random

    from tpudash.clock import Clock
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.link import Link
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

LONGEST_POLL_S: Final = 45.0
"""No question may keep its source from being asked again for longer than this."""
LEAST_PAUSE_S: Final = 0.5
MOST_STRETCH: Final = 8.0
"""How much longer than usual the pauses of a source are that was often told to slow down."""


class Source(Protocol):
    """What is asked, and how often."""

    @property
    def name(self) -> str:
        """The source's name in the snapshot."""
        ...

    async def poll(self, cloud: Cloud) -> None:
        """Ask once and apply the answer to the store."""
        ...

    def interval_s(self) -> float:
        """Return seconds until the source should be asked again, as things stand."""
        ...


@runtime_checkable
class LocalSource(Protocol):
    """A source that has something to say although nothing answers."""

    needs_cloud: Literal[False]

    @property
    def name(self) -> str:
        """The source's name in the snapshot."""
        ...

    async def poll(self, cloud: Cloud | None) -> None:
        """Look once; without a connection there is no cloud to ask."""
        ...

    def interval_s(self) -> float:
        """Return seconds until the next look, as things stand."""
        ...


class Reporter:
    """Tells the store how a source is doing, and keeps when it last answered."""

    def __init__(self, store: Store, clock: Clock, name: str) -> None:
        self._store = store
        self._clock = clock
        self._name = name

    def _status(self) -> SourceStatus:
        return self._store.snapshot.sources.get(self._name) or SourceStatus(self._name)

    def answered(self, interval_s: float) -> None:
        """Report an answer that arrived just now."""
        now = self._clock.now()
        self._report(
            SourceStatus(self._name, SourceState.OK, now, last_attempt=now, interval_s=interval_s)
        )

    def failed(self, error: Exception, retry_in_s: float) -> None:
        """Report a failure; what the source said last keeps its age."""
        title, detail, hint = describe(error)
        state = SourceState.THROTTLED if is_throttling(error) else SourceState.FAILING
        self._report(
            replace(
                self._status(),
                state=state,
                last_attempt=self._clock.now(),
                title=title,
                detail=detail,
                hint=hint,
                interval_s=retry_in_s,
            )
        )

    def _report(self, status: SourceStatus) -> None:
        self._store.apply(SourceReported(status))


def is_throttling(error: Exception) -> bool:
    """Whether an error says that too many calls were made."""
    failure = error.failure if isinstance(error, TpudashError) else None
    return failure is not None and failure.error_class is ErrorClass.RATE_LIMIT


def describe(error: Exception) -> tuple[str, str, str]:
    """Return title, detail and hint of a failure of a source."""
    if isinstance(error, TpudashError):
        return (error.title, error.detail, error.hint)
    return (
        "tpudash could not read this source",
        f"{type(error).__name__}: {error}",
        "this is a defect; the log file has the traceback (tpudash paths)",
    )


class SourceLoop:
    """Asks one source for as long as the session lasts."""

    def __init__(
        self, source: Source | LocalSource, link: Link, store: Store, clock: Clock, random: Random
    ) -> None:
        self.source = source
        self._link = link
        self._clock = clock
        self._random = random
        self._reporter = Reporter(store, clock, source.name)
        self._wake = asyncio.Event()
        self._failures = 0
        self._stretch = 1.0

    def refresh_soon(self) -> None:
        """Cut the present pause short."""
        self._wake.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self.ask_once()
            await self.pause(self._delay())

    async def ask_once(self) -> None:
        """Ask, and report how it went; nothing but a cancellation gets out of here."""
        try:
            async with asyncio.timeout(LONGEST_POLL_S):
                await self._poll()
        except TimeoutError:
            await self._fail(UnreachableError(f"no answer within {LONGEST_POLL_S:.0f} s"))
        except TpudashError as error:
            logger.info("source %s failed: %s", self.source.name, error)
            await self._fail(error)
        except Exception as error:
            logger.exception("source %s failed", self.source.name)
            await self._fail(error)
        else:
            self._failures = 0
            self._stretch = max(1.0, self._stretch * 0.8)
            if not isinstance(self.source, LocalSource):
                self._link.answered()
            self._reporter.answered(self._interval_s())

    async def _poll(self) -> None:
        if isinstance(self.source, LocalSource):
            await self.source.poll(self._link.current)
        else:
            await self.source.poll(await self._link.cloud())

    async def _fail(self, error: Exception) -> None:
        self._failures += 1
        if is_throttling(error):
            self._stretch = min(max(2.0, self._stretch * 2), MOST_STRETCH)
        self._reporter.failed(error, self._delay())
        await self._link.failed(error)

    def _interval_s(self) -> float:
        return self.source.interval_s() * self._stretch

    def _delay(self) -> float:
        if not self._failures:
            return jittered(self._interval_s(), self._random)
        wait_s = back_off(self._failures, self._random)
        # Whoever was told to slow down must not be faster than usual because of that.
        return max(wait_s, self._interval_s()) if self._stretch > 1 else wait_s

    async def pause(self, seconds: float) -> None:
        """Wait that long, or until a refresh is asked for, but never less than a moment.

        A source that is to slow down is refreshed by nobody.
        """
        await self._clock.sleep(min(LEAST_PAUSE_S, seconds))
        rest = seconds - LEAST_PAUSE_S
        if self._stretch > 1:
            await self._clock.sleep(max(0.0, rest))
        elif rest > 0 and not self._wake.is_set():
            await wait_for_either(self._wake, rest, self._clock)
        self._wake.clear()


async def wait_for_either(event: asyncio.Event, seconds: float, clock: Clock) -> None:
    """Return when the event is set or the time is over, whichever is first."""
    waits = {
        asyncio.create_task(_wait(event), name="wake"),
        asyncio.create_task(_sleep(clock, seconds), name="pause"),
    }
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
