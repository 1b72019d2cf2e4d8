"""The queue before the model: natural batches, and limits that are kept."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.unit.trainer.serve.test_bodies import tensor
from tests.waiting import wait_until
from trainer.serve.batcher import Batcher, Limits
from trainer.serve.bodies import Ask
from trainer.serve.meters import Meters
from trainer.serve.numbers import RequestError
from trainer.serve.signatures import Arrays, Signature

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_WIDTH = Signature(
    "f", {"x": tensor("x", np.float32, None, None)}, {"y": tensor("y", np.float32, None, None)}
)
LIMITS = Limits(max_batch=4, window_s=0.0, max_queue=6, timeout_s=30.0)


def ask(*values: float, width: int = 1) -> Ask:
    rows = np.repeat(np.array(values, np.float32)[:, None], width, axis=1)
    return Ask(ANY_WIDTH, {"x": rows}, len(values), by_rows=True)


class Model:
    """Doubles its input, once it is let; remembers the shapes it was called with."""

    def __init__(self) -> None:
        self.go = threading.Semaphore(0)
        self.busy = threading.Event()
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, name: str, arrays: Arrays) -> Arrays:
        self.busy.set()
        assert self.go.acquire(timeout=20)
        self.shapes.append(arrays["x"].shape)
        if (arrays["x"] < 0).any():
            raise ValueError("a negative number")
        return {"y": 2 * arrays["x"]}


@contextmanager
def opened(model: Model, limits: Limits = LIMITS) -> Iterator[Batcher]:
    batcher = Batcher(model, limits, Meters("m"), ValueError)
    yield batcher
    batcher.close()
    model.go.release(100)


async def keep_busy(batcher: Batcher, model: Model) -> asyncio.Task[Arrays]:
    first = asyncio.ensure_future(batcher.submit(ask(1)))
    await asyncio.to_thread(model.busy.wait, 20)
    return first


async def test_a_call_takes_what_queued_while_the_model_was_busy() -> None:
    model = Model()
    with opened(model) as batcher:
        first = await keep_busy(batcher, model)
        rest = [asyncio.ensure_future(batcher.submit(ask(n))) for n in (2, 3, 4, 5, 6)]
        await asyncio.sleep(0)
        model.go.release(3)
        results = [(await each)["y"].tolist() for each in (first, *rest)]
    assert results == [[[2]], [[4]], [[6]], [[8]], [[10]], [[12]]]
    assert model.shapes == [(1, 1), (4, 1), (1, 1)]


async def test_rows_of_different_shapes_never_share_a_call() -> None:
    model = Model()
    with opened(model) as batcher:
        first = await keep_busy(batcher, model)
        rest = [
            asyncio.ensure_future(batcher.submit(ask(n, width=width)))
            for n, width in ((2, 2), (3, 3), (4, 2))
        ]
        await asyncio.sleep(0)
        model.go.release(3)
        results = [(await each)["y"].shape for each in (first, *rest)]
    assert results == [(1, 1), (1, 2), (1, 3), (1, 2)]
    assert model.shapes == [(1, 1), (2, 2), (1, 3)]


async def test_one_bad_request_does_not_fail_those_in_its_batch() -> None:
    model = Model()
    with opened(model) as batcher:
        first = await keep_busy(batcher, model)
        rest = [asyncio.ensure_future(batcher.submit(ask(n))) for n in (2, -1, 4)]
        await asyncio.sleep(0)
        model.go.release(10)
        await first
        results = await asyncio.gather(*rest, return_exceptions=True)
    bad = results[1]
    assert isinstance(bad, RequestError)
    assert (bad.status, str(bad)) == (400, "a negative number")
    assert [isinstance(each, dict) for each in results] == [True, False, True]


async def test_a_full_queue_and_a_request_that_never_fits() -> None:
    model = Model()
    with opened(model) as batcher:
        first = await keep_busy(batcher, model)
        waiting = asyncio.ensure_future(batcher.submit(ask(*range(1, 7))))
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as full:
            await batcher.submit(ask(1))
        with pytest.raises(RequestError) as never:
            await batcher.submit(ask(*range(7)))
        model.go.release(10)
        await asyncio.gather(first, waiting)
        assert batcher.queued_rows == 0
        assert (await batcher.submit(ask(3)))["y"].tolist() == [[6]]
    assert full.value.status == 429
    assert full.value.retry_after_s is not None
    assert never.value.status == 413


async def test_what_waits_too_long_is_answered_and_frees_the_queue() -> None:
    model = Model()
    with opened(model, Limits(4, 0.0, 6, timeout_s=0.05)) as batcher:
        tasks = [await keep_busy(batcher, model)]
        tasks.append(asyncio.ensure_future(batcher.submit(ask(2, 3, 4))))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [each.status for each in results if isinstance(each, RequestError)] == [503, 503]
        model.go.release(10)
        await asyncio.to_thread(
            lambda: wait_until(lambda: not batcher.queued_rows, within=20, what="an empty queue")
        )
    assert model.shapes == [(1, 1)]
