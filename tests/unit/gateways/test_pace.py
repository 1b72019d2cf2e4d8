"""The budgets: no minute sees more calls than it may, whoever asks and however."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest
from google.api_core.exceptions import TooManyRequests
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.pollers.manual_clock import ManualClock, settle
from tpudash.domain.failure import ErrorClass
from tpudash.errors import CapacityError
from tpudash.gateways.pace import (
    LONGEST_PENALTY_S,
    PENALTY_S,
    RATES,
    TAILS,
    Bucket,
    Pace,
    Paces,
    Rate,
    Spend,
)
from tpudash.gateways.retry import Caller, RetryRules

if TYPE_CHECKING:
    from collections.abc import Sequence


async def moments(clock: ManualClock, bucket: Bucket, count: int) -> list[float]:
    """Return when each of many calls that come at once is let through."""
    found: list[float] = []

    async def call() -> None:
        await bucket.take()
        found.append(clock.monotonic())

    tasks = [asyncio.create_task(call()) for _ in range(count)]
    await settle()
    await clock.advance(600)
    await asyncio.gather(*tasks)
    return found


def most_in_a_minute(times: Sequence[float]) -> int:
    return max(sum(start <= time < start + 60 for time in times) for start in times)


async def test_log_listings_never_exceed_the_documented_sixty_a_minute() -> None:
    clock = ManualClock()
    rate = RATES[Spend.LOG_LIST]
    patient = Rate(rate.per_minute, rate.at_once, patience_s=1e6)
    times = await moments(clock, Bucket("list", patient, clock), 300)
    assert most_in_a_minute(times) <= 60
    assert times == sorted(times)


@given(
    st.lists(st.floats(0, 40), min_size=1, max_size=60),
    st.integers(1, 20),
    st.floats(1, 200),
)
@settings(max_examples=40, deadline=None)
def test_no_order_of_calls_gets_more_than_the_rate(
    pauses: list[float], at_once: int, per_minute: float
) -> None:
    async def run() -> None:
        clock = ManualClock()
        bucket = Bucket("x", Rate(per_minute, at_once, patience_s=1e9), clock)
        times: list[float] = []

        async def call() -> None:
            await bucket.take()
            times.append(clock.monotonic())

        tasks = []
        for pause in pauses:
            tasks.append(asyncio.create_task(call()))
            await clock.advance(pause)
        await clock.advance(60 * len(pauses) / per_minute * 2 + 60)
        await asyncio.gather(*tasks)
        assert most_in_a_minute(times) <= at_once + per_minute + 1

    asyncio.run(run())


async def test_whoever_stops_waiting_gives_the_turn_back() -> None:
    clock = ManualClock()
    bucket = Bucket("x", Rate(60, 1, patience_s=100), clock)
    await bucket.take()
    waiting = [asyncio.create_task(bucket.take()) for _ in range(5)]
    await settle()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    asking = asyncio.create_task(bucket.take())
    await clock.advance(1.0)
    assert asking.done()


async def test_a_turn_that_is_too_far_away_is_refused_and_sends_nothing() -> None:
    clock = ManualClock()
    bucket = Bucket("LOG_LIST", Rate(6, 1, patience_s=5), clock)
    await bucket.take()
    with pytest.raises(CapacityError) as caught:
        await bucket.take()
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.RATE_LIMIT
    assert "log list" in caught.value.detail
    await clock.advance(10)
    await bucket.take()


async def test_being_told_to_slow_down_holds_up_everybody_ever_longer() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    caller = Caller(clock, Random(1), rules=RetryRules(attempts=1), pace=pace)
    attempts: list[float] = []

    async def too_many(_: float) -> None:
        attempts.append(clock.monotonic())
        raise TooManyRequests("Too many requests")  # type: ignore[no-untyped-call]

    async def asked() -> None:
        with pytest.raises(CapacityError):
            await caller.read("x", too_many, timeout_s=1, spend=Spend.TPU_LIST)

    for _ in range(4):
        asking = asyncio.create_task(asked())
        await settle()
        while not asking.done():
            await clock.advance(1)
        await asking
    other = asyncio.create_task(pace[Spend.TPU_LIST].take())
    await clock.advance(PENALTY_S * 2)
    assert not other.done()
    await clock.advance(LONGEST_PENALTY_S)
    assert other.done()
    assert len(attempts) == 4
    await pace[Spend.LOG_LIST].take()


async def test_a_project_has_no_more_tails_than_it_may() -> None:
    pace = Pace(ManualClock())
    held = [pace.tail() for _ in range(TAILS)]
    for tail in held:
        await tail.__aenter__()
    with pytest.raises(CapacityError):
        await pace.tail().__aenter__()
    await held.pop().__aexit__(None, None, None)
    async with pace.tail():
        pass


def test_a_project_has_one_budget_and_another_has_its_own() -> None:
    paces = Paces(ManualClock())
    assert paces.of("a") is paces.of("a")
    assert paces.of("a") is not paces.of("b")
