"""Measures what a worker's processes use."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from tpudash.emulator.machines.sockets import SocketCounters

if TYPE_CHECKING:
    from tpudash.emulator.machines.host import ProcessHost
    from tpudash.emulator.machines.worker import Worker
    from tpudash.emulator.world.nodes import NodeRecord


@dataclass(frozen=True, slots=True)
class HostSample:
    """One measurement of one worker."""

    record: NodeRecord
    worker: int
    elapsed_s: float
    """Seconds since the measurement before this one."""

    memory_bytes: int
    cpu_percent: float | None
    """Of all cores of this machine; None at the first measurement."""

    received_bytes: int | None
    """TCP payload since the measurement before; None where the system does not tell."""

    sent_bytes: int | None


@dataclass(slots=True)
class _Before:
    moment: float
    cpu_s: float


class HostSampler:
    """Measures all workers; the differences are to its own last measurement."""

    def __init__(self, host: ProcessHost) -> None:
        self._host = host
        self._before: dict[int, _Before] = {}
        self._sockets = SocketCounters()

    async def sample(self) -> list[HostSample]:
        """Measure every running worker, off the event loop."""
        workers = self._host.workers()
        return await asyncio.to_thread(self._sample_all, workers)

    def _sample_all(self, workers: list[Worker]) -> list[HostSample]:
        samples = []
        alive = set()
        self._sockets.refresh()
        for worker in workers:
            processes = worker.processes()
            if processes:
                alive.add(processes[0].pid)
                samples.append(self._sample(worker, processes))
        self._before = {pid: item for pid, item in self._before.items() if pid in alive}
        return samples

    def _sample(self, worker: Worker, processes: list[psutil.Process]) -> HostSample:
        moment = time.monotonic()
        root = processes[0].pid
        cpu_s, memory = 0.0, 0
        for process in processes:
            with suppress(psutil.Error):
                times = process.cpu_times()
                # Children that have ended count through the parent that collected them.
                cpu_s += times.user + times.system
                cpu_s += times.children_user + times.children_system
                memory += process.memory_info().rss
        before = self._before.get(root)
        self._before[root] = _Before(moment, cpu_s)
        elapsed = moment - before.moment if before else 0.0
        percent = None
        if before is not None and elapsed > 0:
            used = max(0.0, cpu_s - before.cpu_s)
            percent = min(100.0, 100.0 * used / elapsed / (os.cpu_count() or 1))
        traffic = self._sockets.take(root, [process.pid for process in processes])
        received, sent = traffic if traffic is not None and before is not None else (None, None)
        return HostSample(
            record=worker.record,
            worker=worker.number,
            elapsed_s=elapsed,
            memory_bytes=memory,
            cpu_percent=percent,
            received_bytes=received,
            sent_bytes=sent,
        )
