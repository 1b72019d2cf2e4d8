"""Lists over every zone: through the wildcard, or zone by zone where that is refused.

`locations/-` is not written in the TPU API's protos although it works for most projects, so a
refusal of it is no refusal of the question.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from tpudash.domain.failure import ErrorClass
from tpudash.errors import NotAllowedError, TpudashError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.clock import Clock

Item = TypeVar("Item")
logger = logging.getLogger(__name__)

EVERY_ZONE: Final = "-"
ZONES_AT_ONCE: Final = 8
REFUSAL_HOLDS_S: Final = 600.0
"""How long the wildcard is left alone after it was refused, and a list of zones trusted."""
FAULT_HOLDS_S: Final = 60.0
"""The same after a fault of the service, which may pass at any time."""

_PASSING: Final = frozenset({ErrorClass.INTERNAL, ErrorClass.CONNECT, ErrorClass.UNKNOWN_OUTCOME})
_NOT_ABOUT_THE_WILDCARD: Final = frozenset(
    {
        ErrorClass.AUTH_EXPIRED,
        ErrorClass.API_OFF,
        ErrorClass.BILLING,
        ErrorClass.RATE_LIMIT,
        ErrorClass.QUOTA,
        ErrorClass.CONNECT,
        ErrorClass.UNKNOWN_OUTCOME,
    }
)


class Everywhere:
    """Remembers which lists the wildcard was refused for.

    Args:
        list_zones: Asks for the zones that the project sees.
    """

    def __init__(self, list_zones: Callable[[], Awaitable[tuple[str, ...]]], clock: Clock) -> None:
        self._list_zones = list_zones
        self._clock = clock
        self._zones: tuple[str, ...] = ()
        self._alone_until: dict[str, float] = {}

    async def gather(
        self,
        topic: str,
        location: str,
        list_in: Callable[[str], Awaitable[tuple[list[Item], tuple[str, ...]]]],
    ) -> tuple[list[Item], tuple[str, ...]]:
        """Return what a location holds, and the zones that did not answer.

        Args:
            topic: What is listed; a refusal is remembered for each topic.
            location: A zone, or `-` for all.
            list_in: Lists one location.

        Raises:
            TpudashError: Nothing could be listed at all.
        """
        if location != EVERY_ZONE:
            return await list_in(location)
        if self._alone_until.get(topic, 0.0) > self._clock.monotonic() and self._zones:
            return await self._by_zone(list_in)
        try:
            return await list_in(EVERY_ZONE)
        except TpudashError as error:
            if error.failure is None or error.failure.error_class in _NOT_ABOUT_THE_WILDCARD:
                raise
            logger.info("the wildcard was refused for %s: %s", topic, error)
            return await self._after_refusal(topic, list_in, error)

    async def _after_refusal(
        self,
        topic: str,
        list_in: Callable[[str], Awaitable[tuple[list[Item], tuple[str, ...]]]],
        refusal: TpudashError,
    ) -> tuple[list[Item], tuple[str, ...]]:
        try:
            self._zones = await self._list_zones()
        except TpudashError:
            raise refusal from None
        if not self._zones:
            raise refusal
        try:
            answer = await self._by_zone(list_in)
        except TpudashError as error:
            # One zone's refusal would point at that zone, where the reason holds for all.
            raise (refusal if _class_of(error) is _class_of(refusal) else error) from None
        holds_s = FAULT_HOLDS_S if _passes(refusal) else REFUSAL_HOLDS_S
        self._alone_until[topic] = self._clock.monotonic() + holds_s
        return answer

    async def _by_zone(
        self, list_in: Callable[[str], Awaitable[tuple[list[Item], tuple[str, ...]]]]
    ) -> tuple[list[Item], tuple[str, ...]]:
        free, outage = asyncio.Semaphore(ZONES_AT_ONCE), _Outage()

        async def one(zone: str) -> tuple[list[Item], tuple[str, ...]] | TpudashError:
            async with free:
                if outage.error is not None:
                    return outage.error
                try:
                    answer = await list_in(zone)
                except TpudashError as error:
                    outage.failed(error)
                    return error
                outage.answered()
                return answer

        zones = self._zones
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(zone), name=f"list {zone}") for zone in zones]
        answers = [task.result() for task in tasks]
        failed = [answer for answer in answers if isinstance(answer, TpudashError)]
        if failed and len(failed) == len(answers):
            raise next((error for error in failed if isinstance(error, NotAllowedError)), failed[0])
        items: list[Item] = []
        unreachable: list[str] = []
        for zone, answer in zip(zones, answers, strict=True):
            if isinstance(answer, TpudashError):
                logger.info("zone %s did not answer: %s", zone, answer)
                unreachable.append(zone)
            else:
                items.extend(answer[0])
                unreachable.extend(answer[1])
        return items, tuple(dict.fromkeys(unreachable))


class _Outage:
    """Whether so many zones and no other failed that the rest need not be asked."""

    def __init__(self) -> None:
        self.error: TpudashError | None = None
        self._failed = 0
        self._is_up = False

    def answered(self) -> None:
        """Note that a zone answered or refused: the service is there."""
        self._is_up = True

    def failed(self, error: TpudashError) -> None:
        """Note that a zone did not answer, or refused."""
        if not _passes(error):
            self.answered()
            return
        self._failed += 1
        if self._failed >= ZONES_AT_ONCE and not self._is_up:
            self.error = error


def _passes(error: TpudashError) -> bool:
    """Whether an error is a fault of the service rather than its answer."""
    return _class_of(error) in _PASSING


def _class_of(error: TpudashError) -> ErrorClass | None:
    return error.failure.error_class if error.failure else None
