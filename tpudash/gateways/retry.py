"""How calls are made: a deadline for each, retries for questions alone, one exception tree.

The clients' own retries are off: they know neither our classes nor who is waiting.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from tpudash.domain.failure import ErrorClass
from tpudash.errors import TpudashError
from tpudash.gateways.status import foreign_errors, status_of
from tpudash.gateways.translate import to_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from tpudash.clock import Clock
    from tpudash.gateways.pace import Pace, Spend

T = TypeVar("T")
logger = logging.getLogger(__name__)

GRACE_S: Final = 1.0
"""How much longer than gRPC's own deadline a call is waited for, should that one not hold."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often and how patiently a question is repeated.

    Attributes:
        attempts: Calls in all, the first one included.
        first_delay_s: Upper bound of the first pause; each further one is `factor` times longer.
        rate_limit_factor: How much longer the pauses are when the cloud says "too many calls".
    """

    attempts: int = 3
    first_delay_s: float = 0.3
    factor: float = 2.0
    longest_delay_s: float = 8.0
    rate_limit_factor: float = 5.0

    def delay_s(self, attempt: int, error_class: ErrorClass, random: Random) -> float:
        """Return the pause after an attempt, counted from 1: between half and all of its bound."""
        bound = self.first_delay_s * self.factor ** (attempt - 1)
        if error_class is ErrorClass.RATE_LIMIT:
            bound *= self.rate_limit_factor
        bound = min(bound, self.longest_delay_s)
        return bound * random.uniform(0.5, 1.0)


_REPEATABLE: Final = frozenset({ErrorClass.INTERNAL, ErrorClass.CONNECT, ErrorClass.RATE_LIMIT})


class Caller:
    """Makes the calls of all gateways of one connection.

    Args:
        on_signed_out: Called when the cloud or the credentials say that the sign-in is over.
        pace: The budgets that calls are counted against, or None for none.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        on_signed_out: Callable[[], None] = lambda: None,
        rules: RetryRules | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._clock = clock
        self._random = random
        self._on_signed_out = on_signed_out
        self._rules = rules or RetryRules()
        self.pace = pace

    async def read(
        self,
        what: str,
        call: Callable[[float], Awaitable[T]],
        *,
        timeout_s: float,
        spend: Spend | None = None,
    ) -> T:
        """Ask a question, and ask it again after a fault that passes by itself.

        A question that ran out of time is not repeated: whoever waits has waited enough.

        `call` makes the call with the deadline that it is given, in seconds. The deadline begins
        when the call's turn has come.

        Raises:
            TpudashError: The last refusal, or that no answer came.
        """
        attempt = 1
        while True:
            try:
                return await self._paced(what, call, timeout_s, spend, changes=False)
            except TpudashError as error:
                kind = error.failure.error_class if error.failure else ErrorClass.UNCLASSIFIED
                if attempt >= self._rules.attempts or kind not in _REPEATABLE:
                    raise
                delay_s = self._rules.delay_s(attempt, kind, self._random)
                logger.debug("%s: %s; again in %.2f s", what, error, delay_s)
            await self._clock.sleep(delay_s)
            attempt += 1

    async def change(
        self,
        what: str,
        call: Callable[[float], Awaitable[T]],
        *,
        timeout_s: float,
        spend: Spend | None = None,
    ) -> T:
        """Make a call that changes something, once.

        Raises:
            OutcomeUnknownError: No definite answer came.
            TpudashError: It was refused.
        """
        return await self._paced(what, call, timeout_s, spend, changes=True)

    async def _paced(
        self,
        what: str,
        call: Callable[[float], Awaitable[T]],
        timeout_s: float,
        spend: Spend | None,
        *,
        changes: bool,
    ) -> T:
        """Make a call once its turn has come."""
        if self.pace is None or spend is None:
            return await self._once(what, call, timeout_s, changes=changes)
        bucket = self.pace[spend]
        await bucket.take()
        try:
            answer = await self._once(what, call, timeout_s, changes=changes)
        except TpudashError as error:
            if error.failure and error.failure.error_class is ErrorClass.RATE_LIMIT:
                bucket.throttled()
            raise
        bucket.answered()
        return answer

    async def _once(
        self,
        what: str,
        call: Callable[[float], Awaitable[T]],
        timeout_s: float,
        *,
        changes: bool,
    ) -> T:
        try:
            async with asyncio.timeout(timeout_s + GRACE_S):
                return await call(timeout_s)
        except asyncio.CancelledError:
            # grpc.aio also raises this when the channel is closed under a call.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self.translated(
                TimeoutError("the connection was closed"), what, changes=changes
            ) from None
        except foreign_errors() as error:
            raise self.translated(error, what, changes=changes) from error

    def translated(self, error: BaseException, what: str, *, changes: bool = False) -> TpudashError:
        """Return our error for one of Google's; notes that the sign-in is over."""
        ours = to_error(status_of(error), what, changes=changes)
        if ours.failure is not None and ours.failure.error_class is ErrorClass.AUTH_EXPIRED:
            self._on_signed_out()
        return ours
