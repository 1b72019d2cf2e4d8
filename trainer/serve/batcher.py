"""Natural batching: one call of the model takes whatever queued while it was busy."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.faults import one_line
from trainer.serve.numbers import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainer.serve.bodies import Ask
    from trainer.serve.meters import Meters
    from trainer.serve.signatures import Arrays

_SWEEP_S = 0.02
_Key = tuple[Any, ...]


@dataclass(frozen=True)
class Limits:
    """What the queue allows.

    Attributes:
        max_batch: most rows in one call of the model.
        window_s: how long a call waits for more rows.
        max_queue: most rows that may wait.
        timeout_s: longest time to an answer.
    """

    max_batch: int
    window_s: float
    max_queue: int
    timeout_s: float


class _Job:
    """A request that waits for the model."""

    __slots__ = ("arrived", "ask", "future", "key")

    def __init__(self, ask: Ask, future: asyncio.Future[Arrays]) -> None:
        self.ask = ask
        self.future = future
        self.arrived = time.monotonic()
        shapes = (array.shape[1:] for array in ask.arrays.values())
        # Rows of different shapes cannot stand in one array; others cannot share a call at all.
        self.key: _Key = (ask.signature.name, *shapes) if ask.signature.batches else (id(self),)


class Batcher:
    """The queue before the model, and the thread that calls it.

    Args:
        call: runs a signature by name on arrays; raises ValueError-like errors for bad values.
        limits: of the queue.
        meters: told of each call.
        refused: the exception by which `call` says that it refuses the values.
    """

    def __init__(
        self,
        call: Callable[[str, Arrays], Arrays],
        limits: Limits,
        meters: Meters,
        refused: type[Exception],
    ) -> None:
        self._call = call
        self._limits = limits
        self._meters = meters
        self._refused = refused
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._waiting: dict[_Key, deque[_Job]] = {}
        self._rows = 0
        self._pending: deque[_Job] = deque()
        self._closed = False
        self._rows_per_s = 0.0
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)

    @property
    def queued_rows(self) -> int:
        """Instances that wait for the model."""
        return self._rows

    @property
    def alive(self) -> bool:
        """Whether the model's thread runs."""
        return self._thread.is_alive()

    async def submit(self, ask: Ask) -> Arrays:
        """Return the model's outputs for a request.

        Raises:
            RequestError: the queue is full, the time is over, or the model refuses the values.
        """
        if ask.rows > self._limits.max_queue:
            raise RequestError(
                413,
                f"{ask.rows} instances in a request, at most {self._limits.max_queue} are taken",
            )
        if self._rows + ask.rows > self._limits.max_queue:
            text = f"{self._rows} instances are waiting already"
            raise RequestError(429, text, self._retry_after())
        job = _Job(ask, self._loop.create_future())
        self._pending.append(job)
        with self._changed:
            self._waiting.setdefault(job.key, deque()).append(job)
            self._rows += ask.rows
            self._changed.notify()
        return await job.future

    def close(self) -> None:
        """Let the thread end after its current call."""
        self._sweeper.cancel()
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _retry_after(self) -> int:
        speed = self._rows_per_s
        return max(1, min(60, math.ceil(self._rows / speed))) if speed > 0 else 1

    def _sweep(self) -> None:
        """Answer what has waited too long; all wait equally long, so the oldest are first."""
        oldest = time.monotonic() - self._limits.timeout_s
        while self._pending and (
            self._pending[0].future.done() or self._pending[0].arrived <= oldest
        ):
            _fail(
                self._pending.popleft(),
                RequestError(503, f"no answer within {self._limits.timeout_s:g} s", 1),
            )
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)

    def _work(self) -> None:
        while jobs := self._take():
            began = time.monotonic()
            results = self._run(jobs)
            seconds = time.monotonic() - began
            rows = sum(job.ask.rows for job in jobs)
            self._rows_per_s = 0.9 * self._rows_per_s + 0.1 * rows / max(seconds, 1e-6)
            self._meters.called(rows, seconds)
            try:
                self._loop.call_soon_threadsafe(_deliver, jobs, results)
            except RuntimeError:
                return  # the loop was closed, and with it every connection

    def _take(self) -> list[_Job]:
        """Wait for jobs and return those that go into one call; none when closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return []
            key, queue = min(self._waiting.items(), key=lambda item: item[1][0].arrived)
            ends = queue[0].arrived + self._limits.window_s
            while sum(job.ask.rows for job in queue) < self._limits.max_batch:
                left = ends - time.monotonic()
                if left <= 0 or self._closed:
                    break
                self._changed.wait(left)
            return self._taken(key, queue)

    def _taken(self, key: _Key, queue: deque[_Job]) -> list[_Job]:
        jobs: list[_Job] = []
        rows = 0
        while queue and (not jobs or rows + queue[0].ask.rows <= self._limits.max_batch):
            job = queue.popleft()
            self._rows -= job.ask.rows
            if not job.future.done():
                jobs.append(job)
                rows += job.ask.rows
        if not queue:
            del self._waiting[key]
        # Jobs whose time was over are gone; an empty list would end the thread.
        return jobs or self._take()

    def _run(self, jobs: list[_Job]) -> list[Arrays | Exception]:
        try:
            return self._run_together(jobs)
        except Exception as error:  # noqa: BLE001 - told to the client whose values caused it
            if len(jobs) == 1:
                return [self._told(error)]
        # One bad request must not fail those that happen to share its batch.
        return [result for job in jobs for result in self._run([job])]

    def _run_together(self, jobs: list[_Job]) -> list[Arrays | Exception]:
        name = jobs[0].ask.signature.name
        if len(jobs) == 1:
            return [self._call(name, jobs[0].ask.arrays)]
        together = {
            key: np.concatenate([job.ask.arrays[key] for job in jobs]) for key in jobs[0].ask.arrays
        }
        outputs = self._call(name, together)
        return list(_split(outputs, (job.ask.rows for job in jobs)))

    def _told(self, error: Exception) -> RequestError:
        if isinstance(error, self._refused):
            return RequestError(400, str(error))
        return RequestError(500, one_line(f"{type(error).__name__}: {error}", 300))


def _split(outputs: Arrays, rows: Iterable[int]) -> Iterable[Arrays]:
    start = 0
    for count in rows:
        yield {name: array[start : start + count] for name, array in outputs.items()}
        start += count


def _deliver(jobs: list[_Job], results: list[Arrays | Exception]) -> None:
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, Exception):
            _fail(job, result)
        elif not job.future.done():
            job.future.set_result(result)


def _fail(job: _Job, error: Exception) -> None:
    if not job.future.done():
        job.future.set_exception(error)
