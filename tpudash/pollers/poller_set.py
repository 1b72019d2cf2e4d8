"""All pollers of a session as one: started together, refreshed together, cancelled together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import Severity
from tpudash.pollers.history import HISTORY
from tpudash.pollers.listings import NodesSource, RequestsSource
from tpudash.pollers.log_tail import LogTail
from tpudash.pollers.metrics import MetricsSource
from tpudash.pollers.run_progress import ProgressBook
from tpudash.pollers.runs import RunsSource
from tpudash.pollers.source import SourceLoop
from tpudash.store.snapshot import CHECKLIST, NODES, RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from tpudash.clock import Clock
    from tpudash.config.settings import Intervals
    from tpudash.domain.log import LogEntry
    from tpudash.domain.run import RunState
    from tpudash.pollers.link import Link
    from tpudash.pollers.runs import ReadRuns
    from tpudash.pollers.source import LocalSource, Source
    from tpudash.store.changes import ChangeSet
    from tpudash.store.store import Store

SETTLE_S: Final = 2.0
"""A node is gone a moment after its trainer said that it ends, so it is looked at twice."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What every poller needs."""

    store: Store
    link: Link
    clock: Clock
    random: Random


class PollerSet:
    """Keeps the store up to date until it is cancelled.

    Args:
        read_runs: Reads the runs' records.
        more: Further sources, such as prices and the checklist.
    """

    def __init__(
        self,
        tools: Tools,
        intervals: Intervals,
        read_runs: ReadRuns,
        more: Sequence[Source | LocalSource] = (),
    ) -> None:
        store, clock = tools.store, tools.clock
        self._tools = tools
        self._runs = RunsSource(store, clock, intervals.runs, read_runs, ProgressBook())
        sources: list[Source | LocalSource] = [
            NodesSource(store, clock, intervals.nodes),
            self._runs,
            RequestsSource(store, clock, intervals.requests),
            MetricsSource(store, clock, intervals.metrics),
            *more,
        ]
        self._loops = {
            source.name: SourceLoop(source, tools.link, store, clock, tools.random)
            for source in sources
        }
        self._tail = LogTail(tools.link, store, clock, tools.random, self._on_entries)
        self._second_look: asyncio.Task[None] | None = None
        self._run_states: Mapping[str, RunState] = {}

    async def run(self) -> None:
        """Poll until cancelled, then leave nothing behind: no task, no open channel."""
        unsubscribe = self._tools.store.subscribe(self._on_changes)
        tasks = [
            asyncio.create_task(loop.run(), name=f"poll {name}")
            for name, loop in self._loops.items()
        ]
        tasks.append(asyncio.create_task(self._tail.run(), name="poll logs"))
        try:
            await asyncio.gather(*tasks)
        finally:
            unsubscribe()
            if self._second_look is not None:
                tasks.append(self._second_look)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._tools.link.close()

    def refresh_soon(self) -> None:
        """Ask every source again without waiting for its interval."""
        for loop in self._loops.values():
            loop.refresh_soon()
        self._tail.refresh_soon()

    def _on_entries(self, entries: Sequence[LogEntry]) -> None:
        if self._runs.take_log(entries):
            self._look_twice()
        if any(entry.severity.rank >= Severity.ERROR.rank for entry in entries):
            # A line that names a cause is a symptom: the checklist says at once what it means.
            self._wake(CHECKLIST)

    def _on_changes(self, changes: ChangeSet) -> None:
        # An operation that moved on has changed a node; a node that changed has changed its run.
        if changes.operations:
            self._wake(NODES, RUNS, CHECKLIST)
        elif changes.nodes:
            self._wake(RUNS, CHECKLIST, HISTORY)
        if self._has_run_turned(changes):
            self._wake(CHECKLIST)

    def _has_run_turned(self, changes: ChangeSet) -> bool:
        """Whether a run came, or does something else than before: stalls, fails, resumes, ends."""
        if not changes.runs:
            return False
        before = self._run_states
        runs = self._tools.store.snapshot.runs
        self._run_states = {name: run.state for name, run in runs.items()}
        return self._run_states != before

    def _wake(self, *names: str) -> None:
        for name in names:
            if name in self._loops:
                self._loops[name].refresh_soon()

    def _look_twice(self) -> None:
        self._wake(NODES, RUNS)
        if self._second_look is None or self._second_look.done():
            self._second_look = asyncio.create_task(self._look_again(), name="second look")

    async def _look_again(self) -> None:
        await self._tools.clock.sleep(SETTLE_S)
        self._wake(NODES, RUNS)
