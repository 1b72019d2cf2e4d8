"""Which node a hidden VM belongs to, so that its time series find their node.

Cloud Monitoring names a worker of `GceTpuWorker` by its VM, whose name has nothing to do with the
node's, and no join is documented. The agent knows both: it tells its VM's name and number with
each sample of its host.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries

MOST_INSTANCES: Final = 20_000
_NUMBERED: Final = re.compile(r"-w-\d+$")
NAMES: Final = ("instance", "instance_id")
"""What the agent's `host` event calls its VM's name and number."""


class InstanceBook:
    """Remembers the node and worker of each VM that an agent has told of; bounded in size."""

    def __init__(self) -> None:
        self._worker_of: dict[str, tuple[str, str]] = {}

    def take(self, entries: Iterable[LogEntry]) -> None:
        """Learn from what agents wrote."""
        for entry in entries:
            if entry.event == "host" and entry.payload and entry.node_id:
                self._learn(entry.payload, (entry.node_id, entry.worker_id))

    def _learn(self, payload: Mapping[str, object], worker: tuple[str, str]) -> None:
        for name in NAMES:
            value = payload.get(name)
            if isinstance(value, str) and value and self._worker_of.get(value) != worker:
                if len(self._worker_of) >= MOST_INSTANCES:
                    self._worker_of.pop(next(iter(self._worker_of)))
                self._worker_of[value] = worker

    def joined(self, series: Iterable[MetricSeries]) -> tuple[MetricSeries, ...]:
        """Return the series, those of a VM that is known with its node and worker."""
        return tuple(self._joined(one) for one in series)

    def _joined(self, one: MetricSeries) -> MetricSeries:
        for name in (one.worker_id, one.labels.get("instance_name", "")):
            known = self._worker_of.get(name) or self._worker_of.get(name.partition(".")[0])
            if known is not None:
                node_id, worker_id = known
                # A name that tells the worker is kept, so that a series never splits in two.
                kept = one.worker_id if _NUMBERED.search(one.worker_id) else worker_id
                return replace(one, node_id=node_id, worker_id=kept)
        return one
