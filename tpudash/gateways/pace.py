"""How often each API may be called: one budget per project for all who call from this process.

Buckets fill with time. Whoever finds one empty is given the moment at which a call is due, so that
waiting is in turn, needs no lock and costs nothing when it is given up.
Source of the documented limits: https://cloud.google.com/logging/quotas; for the rest, which Google
does not publish, the figures are ours.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from tpudash.clock import SystemClock
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.errors import CapacityError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tpudash.clock import Clock

PENALTY_S: Final = 4.0
LONGEST_PENALTY_S: Final = 60.0
TAILS: Final = 10
"""Open TailLogEntries streams that Cloud Logging allows a project."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What a bucket allows.

    Attributes:
        per_minute: Calls a minute in the long run.
        at_once: Calls that may follow each other without a pause.
        patience_s: How long a call may have to wait for its turn; else it is refused here.
    """

    per_minute: float
    at_once: int
    patience_s: float


class Spend(Enum):
    """What a call is counted as."""

    LOG_LIST = auto()
    SERIES = auto()
    TPU_LIST = auto()
    TPU_GET = auto()
    CREATE = auto()
    DELETE = auto()


RATES: Final = {
    # Together never more than the documented 60 in any minute.
    Spend.LOG_LIST: Rate(per_minute=50, at_once=10, patience_s=30),
    Spend.SERIES: Rate(per_minute=120, at_once=40, patience_s=30),
    Spend.TPU_LIST: Rate(per_minute=240, at_once=60, patience_s=30),
    Spend.TPU_GET: Rate(per_minute=240, at_once=60, patience_s=30),
    Spend.CREATE: Rate(per_minute=20, at_once=6, patience_s=300),
    Spend.DELETE: Rate(per_minute=30, at_once=10, patience_s=300),
}


class Bucket:
    """The budget of one kind of call."""

    def __init__(self, name: str, rate: Rate, clock: Clock) -> None:
        self._name = name
        self._rate = rate
        self._clock = clock
        self._calls = float(rate.at_once)
        self._as_of = clock.monotonic()
        self._penalty_s = 0.0

    @property
    def _per_second(self) -> float:
        return self._rate.per_minute / 60

    def _fill(self) -> None:
        now = self._clock.monotonic()
        grown = self._calls + (now - self._as_of) * self._per_second
        self._calls, self._as_of = min(float(self._rate.at_once), grown), now

    async def take(self) -> None:
        """Wait until a call is due, and count it.

        Raises:
            CapacityError: Its turn is too far away.
        """
        self._fill()
        wait_s = max(0.0, (1 - self._calls) / self._per_second)
        if wait_s > self._rate.patience_s:
            raise _too_many(self._name, self._rate, wait_s)
        self._calls -= 1
        if wait_s <= 0:
            return
        try:
            await self._clock.sleep(wait_s)
        except BaseException:
            self._calls += 1
            raise

    def throttled(self) -> None:
        """Note that the cloud said "too many calls": all wait, longer each time it says so."""
        self._fill()
        self._penalty_s = min(max(PENALTY_S, 2 * self._penalty_s), LONGEST_PENALTY_S)
        self._calls = min(self._calls, 1 - self._penalty_s * self._per_second)

    def answered(self) -> None:
        """Note that a call was let through."""
        self._penalty_s = 0.0


class Pace:
    """The buckets of one project."""

    def __init__(self, clock: Clock) -> None:
        self._buckets = {spend: Bucket(spend.name, rate, clock) for spend, rate in RATES.items()}
        self._tails = 0

    def __getitem__(self, spend: Spend) -> Bucket:
        """Return the bucket of a kind of call."""
        return self._buckets[spend]

    @asynccontextmanager
    async def tail(self) -> AsyncIterator[None]:
        """Hold one of the log tails that a project may have open.

        Raises:
            CapacityError: This process has as many open as there may be.
        """
        if self._tails >= TAILS:
            raise _too_many("log tails", Rate(TAILS, TAILS, 0), 0)
        self._tails += 1
        try:
            yield
        finally:
            self._tails -= 1


class Paces:
    """The budgets of all projects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_project: dict[str, Pace] = {}

    def of(self, project: str) -> Pace:
        """Return a project's budgets, always the same."""
        if project not in self._by_project:
            self._by_project[project] = Pace(self._clock)
        return self._by_project[project]


SHARED: Final = Paces(SystemClock())
"""Those of this process: a connection that is made anew goes on with what is left."""


def _too_many(name: str, rate: Rate, wait_s: float) -> CapacityError:
    what = name.lower().replace("_", " ")
    evidence = (
        f"tpudash itself makes at most {rate.per_minute:g} calls of this kind ({what}) a minute;"
        f" the next would be due in {wait_s:.0f} s"
        if wait_s
        else f"{TAILS} {what} are open already, and a project may have no more"
    )
    advice = "Wait a minute; nothing was sent."
    failure = Failure(ErrorClass.RATE_LIMIT, evidence, advice, RetryPolicy.SAME_PLACE)
    return CapacityError("too many calls", detail=evidence, hint=advice, failure=failure)
