"""One operation under way: its tools, its progress, and patience with a cloud that is silent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from tpudash.errors import (
    CapacityError,
    NotAllowedError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
)
from tpudash.operations.refusals import is_passing, leaves_doubt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random
    from typing import Any, Protocol

    from tpudash.clock import Clock
    from tpudash.domain.failure import CloudStatus, Failure
    from tpudash.domain.node import Node
    from tpudash.domain.request import QueuedResource
    from tpudash.gateways.protocols import BucketGateway, Cloud, CloudOperation, TpuGateway
    from tpudash.operations.bundle import TrainerBundle
    from tpudash.operations.journal import Journal

    class Connecting(Protocol):
        """What gives the gateways, anew after a loss."""

        async def cloud(self) -> Cloud:
            """Return all gateways."""
            ...


T = TypeVar("T")

_REFUSALS: Final = (NotAllowedError, OperationFailedError, CapacityError)
"""Errors by which a question itself is refused, so that it stays unanswered."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the cloud is asked, and for how long.

    Attributes:
        first_s: Pause after the first question; each further one is `growth` times longer.
        settle_s: How long an unanswered CreateNode may take to show its node.
        give_up_s: How long a question may stay unanswered before the operation is left alone.
        retries: How often a change that the cloud refused for a moment is asked for again.
        watch_first_s: Pause of a supervisor after something moved, up to `watch_longest_s`.
    """

    first_s: float = 0.4
    growth: float = 1.4
    longest_s: float = 5.0
    settle_s: float = 30.0
    give_up_s: float = 600.0
    retries: int = 5
    watch_first_s: float = 2.0
    watch_longest_s: float = 15.0

    @property
    def watching(self) -> Pace:
        """How often a supervisor looks at its run."""
        return replace(self, first_s=self.watch_first_s, longest_s=self.watch_longest_s)


@dataclass(frozen=True, slots=True)
class Tools:
    """What every operation works with.

    Attributes:
        classify: Names the cause of an error that arrived inside a long-running operation.
        bundle: The trainer's code; made when first asked for.
    """

    connection: Connecting
    journal: Journal
    clock: Clock
    random: Random
    classify: Callable[[CloudStatus], Failure]
    bundle: Callable[[], Awaitable[TrainerBundle]]
    pace: Pace = field(default_factory=Pace)

    def pause(self, pace: Pace | None = None) -> Pause:
        """Return a fresh series of pauses, at the usual pace or at another."""
        return Pause(self.clock, self.random, pace or self.pace)

    async def tpu(self) -> TpuGateway:
        """Return the Cloud TPU API, on a new connection if the old one was lost."""
        return (await self.connection.cloud()).tpu

    async def bucket(self) -> BucketGateway:
        """Return the files, on a new connection if the old one was lost."""
        return (await self.connection.cloud()).bucket


class Pause:
    """Pauses between two looks at the same thing, each longer than the one before."""

    def __init__(self, clock: Clock, random: Random, pace: Pace) -> None:
        self._clock = clock
        self._random = random
        self._pace = pace
        self._next_s = pace.first_s
        self._began = clock.monotonic()

    @property
    def waited_s(self) -> float:
        """Seconds since the first look, or since the last sign of life."""
        return self._clock.monotonic() - self._began

    def reset(self) -> None:
        """Look more often again: something moved."""
        self._next_s = self._pace.first_s
        self._began = self._clock.monotonic()

    async def wait(self) -> None:
        """Wait until the next look is due."""
        delay_s = self._next_s * self._random.uniform(0.8, 1.0)
        self._next_s = min(self._pace.longest_s, self._next_s * self._pace.growth)
        await self._clock.sleep(delay_s)


class Course:
    """What one operation may do: ask until the answer is definite, tell, and save its intent.

    Args:
        tell: Shows how far the operation got: a sentence, how many steps are done, and a
            supervisor's phase.
    """

    def __init__(
        self, operation_id: str, tools: Tools, tell: Callable[[str, int | None, str], None]
    ) -> None:
        self.operation_id = operation_id
        self.tools = tools
        self._tell = tell
        self._told = ""

    def say(self, message: str, *, done: int | None = None, phase: str = "") -> None:
        """Tell what the operation is doing now, and keep it in the journal when it is news."""
        self._tell(message, done, phase)
        if message != self._told:
            self._told = message
            self.tools.journal.note(self.operation_id, message)

    def intend(self, what: str, **facts: Any) -> None:
        """Save a step that is about to be taken; when this returns it is on the disk."""
        self.tools.journal.intend(self.operation_id, what, **facts)

    async def node(self, name: str) -> Node | None:
        """Return a node as it is for sure; None when the cloud says that it does not exist."""

        async def ask() -> Node:
            return await (await self.tools.tpu()).get_node(name)

        return await self.definite(ask, f"node {_short(name)}")

    async def request(self, name: str) -> QueuedResource | None:
        """Return a queued resource as it is for sure; None when it does not exist."""

        async def ask() -> QueuedResource:
            return await (await self.tools.tpu()).get_request(name)

        return await self.definite(ask, f"queued resource {_short(name)}")

    async def operation(self, name: str) -> CloudOperation | None:
        """Return a long-running operation; None when the cloud has forgotten it."""

        async def ask() -> CloudOperation:
            return await (await self.tools.tpu()).get_operation(name)

        return await self.definite(ask, "the cloud's operation")

    async def definite(self, ask: Callable[[], Awaitable[T]], what: str) -> T | None:
        """Ask until there is an answer; None when it is that the thing does not exist.

        Raises:
            TpudashError: The question itself is refused, or nobody answers for very long.
        """
        pause = self.tools.pause()
        while True:
            try:
                return await ask()
            except NotFoundError:
                return None
            except TpudashError as error:
                if isinstance(error, _REFUSALS) and not leaves_doubt(error):
                    raise _unseen(error, what) from error
                if not is_passing(error) or pause.waited_s > self.tools.pace.give_up_s:
                    raise
                self.say(f"no answer about {what} ({error.title}); asking again")
            await pause.wait()

    async def insist(self, change: Callable[[], Awaitable[T]], what: str) -> T:
        """Make a change that may be made twice without harm, until it is answered.

        Raises:
            TpudashError: It is refused, or nobody answers for very long.
        """
        pause = self.tools.pause()
        while True:
            try:
                return await change()
            except TpudashError as error:
                again = is_passing(error) or isinstance(error, OutcomeUnknownError)
                if not again or pause.waited_s > self.tools.pace.give_up_s:
                    raise
                self.say(f"no answer to: {what} ({error.title}); trying again")
            await pause.wait()


def _unseen(error: TpudashError, what: str) -> OutcomeUnknownError:
    """Return that a thing can't be looked at, so that nothing is known of it."""
    cannot = "not allowed to" if isinstance(error, NotAllowedError) else "can't"
    return OutcomeUnknownError(
        f"{cannot} look at {what}, so what became of it is not known",
        detail=error.detail,
        hint=error.hint,
        failure=error.failure,
    )


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]
