"""Runs: their records from the bucket, with what their log says laid over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.run import RunState
from tpudash.pollers.activity import is_changing
from tpudash.store.changes import RunsRead
from tpudash.store.snapshot import NODES, RUNS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from tpudash.clock import Clock
    from tpudash.domain.log import LogEntry
    from tpudash.domain.run import Run
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.run_progress import ProgressBook
    from tpudash.store.store import Store

    ReadRuns = Callable[[Cloud, Store], Awaitable[tuple[Run, ...]]]

WHILE_CHANGING_S: Final = 3.0
AT_REST_S: Final = 30.0
NODES_LOOK_S: Final = 0.1
RESTING_STATES: Final = frozenset(
    {RunState.FINISHED, RunState.FAILED, RunState.DELETED, RunState.PREEMPTED}
)


class RunsSource:
    """Reads the records of all runs.

    Args:
        read: Reads them, given the gateways and what is known of nodes and requests.
        progress: What the log said, which is newer than a record that is written at checkpoints.
    """

    name = RUNS

    def __init__(
        self,
        store: Store,
        clock: Clock,
        interval_s: float,
        read: ReadRuns,
        progress: ProgressBook,
    ) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._read = read
        self._progress = progress

    async def poll(self, cloud: Cloud) -> None:
        """Read all runs once, as soon as the nodes are known: without them nothing trains."""
        while self._store.snapshot.sources[NODES].last_success is None:
            await self._clock.sleep(NODES_LOOK_S)
        as_of = self._clock.now()
        runs = await self._read(cloud, self._store)
        self._store.apply(RunsRead(self._laid_over(runs), as_of))

    def take_log(self, entries: Sequence[LogEntry]) -> bool:
        """Move runs on as their log does, and say whether one reached a turning point."""
        turned = self._progress.take(entries)
        touched = {entry.run for entry in entries if entry.event is not None}
        known = self._store.snapshot.runs
        if touched & known.keys():
            self._store.apply(RunsRead(self._laid_over(known.values()), self._clock.now()))
        return turned

    def _laid_over(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        return tuple(self._progress.laid_over(run) for run in runs)

    def interval_s(self) -> float:
        """Return seconds until the next reading."""
        snapshot = self._store.snapshot
        if is_changing(snapshot):
            return min(WHILE_CHANGING_S, self._interval_s)
        if all(run.state in RESTING_STATES for run in snapshot.runs.values()):
            return max(AT_REST_S, self._interval_s) if snapshot.runs else self._interval_s
        return self._interval_s
