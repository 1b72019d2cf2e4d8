"""Utilization of each worker: a value, or the reason why there is none, by the evidence."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Final

from tpudash.domain.metric import NoValue
from tpudash.domain.node import NodeState
from tpudash.tui.widgets.spark import Sample, usual_distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Node
    from tpudash.store.snapshot import NodeTimes


class Measure(StrEnum):
    """What is measured of a worker."""

    DUTY = "duty cycle"
    TENSORCORE = "TensorCore"
    HBM_USED = "HBM used"
    HBM_TOTAL = "HBM total"
    CPU = "host CPU"
    MEMORY = "host memory"
    RECEIVED = "received"
    SENT = "sent"


_PREFIX: Final = "tpu.googleapis.com/"
MEASURES: Final = {
    f"{_PREFIX}accelerator/duty_cycle": Measure.DUTY,
    f"{_PREFIX}accelerator/tensorcore_utilization": Measure.TENSORCORE,
    f"{_PREFIX}accelerator/memory_used": Measure.HBM_USED,
    f"{_PREFIX}accelerator/memory_total": Measure.HBM_TOTAL,
    f"{_PREFIX}cpu/utilization": Measure.CPU,
    f"{_PREFIX}memory/usage": Measure.MEMORY,
    f"{_PREFIX}network/received_bytes_count": Measure.RECEIVED,
    f"{_PREFIX}network/sent_bytes_count": Measure.SENT,
}
"""Metric types of Cloud Monitoring (resources `tpu_worker` and `GceTpuWorker`)."""
OF_ACCELERATOR: Final = frozenset(
    {Measure.DUTY, Measure.TENSORCORE, Measure.HBM_USED, Measure.HBM_TOTAL}
)
_SUMMED: Final = frozenset({Measure.HBM_USED, Measure.HBM_TOTAL})
_COUNTED: Final = frozenset({Measure.RECEIVED, Measure.SENT})
GOOGLE_PERIOD: Final = timedelta(seconds=60)
GOOGLE_LAG: Final = timedelta(seconds=180)
"""How long after its period a point may become visible."""
OUTLIER_SHARE: Final = 0.7
_LAST_NUMBER: Final = re.compile(r"(\d+)$")


@dataclass(frozen=True, slots=True)
class Reading:
    """One measure of one worker.

    Attributes:
        value: Percent, bytes, or bytes per second; None with a `reason`.
        time: When the newest point was taken, also of a stale one.
        history: All points as (POSIX time, value), oldest first.
        is_outlier: Whether it lies far below the other workers of its node.
    """

    value: float | None = None
    reason: NoValue | None = NoValue.NO_DATA
    time: datetime | None = None
    history: tuple[Sample, ...] = ()
    is_outlier: bool = False


@dataclass(frozen=True, slots=True)
class WorkerReadings:
    """Everything measured of one worker of a node."""

    node: Node
    worker: str
    readings: Mapping[Measure, Reading] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Unique and stable."""
        return worker_key(self.node, self.worker)

    def of(self, measure: Measure) -> Reading:
        """Return one reading."""
        return self.readings.get(measure, Reading())


@dataclass(frozen=True, slots=True)
class Evidence:
    """What decides which reason a missing value has.

    Attributes:
        period: Distance of samples.
        is_training: Whether the trainer on the node is known to make steps now.
    """

    now: datetime
    period: timedelta
    times: NodeTimes | None
    is_training: bool

    @property
    def lag(self) -> timedelta:
        """How old a node must be before its values can be missed."""
        late = GOOGLE_LAG if self.period >= GOOGLE_PERIOD else self.period
        return 2 * self.period + late


def worker_key(node: Node, worker: str) -> str:
    """Return the unique and stable key of one worker."""
    return f"{node.name}:{worker}"


def workers_of(node: Node) -> tuple[str, ...]:
    """Return the numbers of a node's workers; a node always has at least one."""
    return tuple(str(worker.index) for worker in node.workers) or ("0",)


def read_node(
    node: Node, series: Iterable[MetricSeries], evidence: Evidence
) -> list[WorkerReadings]:
    """Return the readings of every worker that the API lists for a node, in their order."""
    grouped: defaultdict[str, defaultdict[Measure, list[MetricSeries]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for one in series:
        measure = MEASURES.get(one.metric)
        if measure is not None:
            grouped[_number(one.worker_id)][measure].append(one)
    found = []
    for worker in workers_of(node):
        histories = {
            measure: _history(measure, parts) for measure, parts in grouped[worker].items()
        }
        readings = {measure: _reading(measure, histories, node, evidence) for measure in Measure}
        found.append(WorkerReadings(node, worker, readings))
    return _with_outliers(found)


def _number(worker_id: str) -> str:
    """Return the worker's number, which is the end of some resources' worker ids."""
    found = _LAST_NUMBER.search(worker_id)
    return found[1] if found else "0"


def _history(measure: Measure, parts: Sequence[MetricSeries]) -> tuple[Sample, ...]:
    """Return one series out of those of several chips or cores: their sum, or their mean."""
    by_time: defaultdict[float, list[float]] = defaultdict(list)
    for part in parts:
        for point in part.points:
            by_time[point.time.timestamp()].append(point.value)
    samples = [
        (time, sum(values) if measure in _SUMMED | _COUNTED else sum(values) / len(values))
        for time, values in sorted(by_time.items())
    ]
    if measure in _COUNTED and any(part.unit == "By" for part in parts):
        distance = usual_distance(samples) or GOOGLE_PERIOD.total_seconds()
        samples = [(time, value / distance) for time, value in samples]
    return tuple(samples)


def _reading(
    measure: Measure,
    histories: Mapping[Measure, tuple[Sample, ...]],
    node: Node,
    evidence: Evidence,
) -> Reading:
    history = histories.get(measure, ())
    if not history:
        return Reading(reason=_why_missing(measure, histories, node, evidence))
    time, value = history[-1]
    moment = datetime.fromtimestamp(time, UTC)
    if evidence.now - moment > evidence.lag + evidence.period:
        is_host = measure not in OF_ACCELERATOR
        stale = NoValue.AGENT_FAILED if is_host and _is_up(node) else NoValue.STALE
        reason = _why_silent(histories, evidence) if not is_host else stale
        return Reading(reason=reason, time=moment, history=history)
    return Reading(value, None, moment, history)


def _is_up(node: Node) -> bool:
    return node.state == NodeState.READY


def _why_silent(histories: Mapping[Measure, tuple[Sample, ...]], evidence: Evidence) -> NoValue:
    """Say why an accelerator's values ended: with the workload, or for another reason."""
    if not evidence.is_training and _is_fresh(histories.get(Measure.CPU, ()), evidence):
        return NoValue.NO_WORKLOAD
    return NoValue.STALE


def _is_fresh(history: tuple[Sample, ...], evidence: Evidence) -> bool:
    limit = evidence.now - evidence.lag - evidence.period
    return bool(history) and history[-1][0] >= limit.timestamp()


def _why_missing(
    measure: Measure,
    histories: Mapping[Measure, tuple[Sample, ...]],
    node: Node,
    evidence: Evidence,
) -> NoValue:
    """Say why a measure has no point at all."""
    since = evidence.times.ready_since if evidence.times else None
    since = since or node.create_time
    if not _is_up(node):
        return NoValue.NO_DATA
    if since is not None and evidence.now - since < evidence.lag:
        return NoValue.NOT_YET
    if measure in OF_ACCELERATOR:
        is_idle = _is_fresh(histories.get(Measure.CPU, ()), evidence) and not evidence.is_training
        return NoValue.NO_WORKLOAD if is_idle else NoValue.NO_DATA
    host = (Measure.CPU, Measure.MEMORY)
    return NoValue.NO_DATA if any(histories.get(one) for one in host) else NoValue.AGENT_FAILED


def _with_outliers(workers: list[WorkerReadings]) -> list[WorkerReadings]:
    """Mark workers whose duty cycle lies far below that of the others of their node."""
    known = [
        reading.value
        for worker in workers
        if (reading := worker.of(Measure.DUTY)).value is not None
    ]
    if len(known) < 3:
        return workers
    limit = median(known) * OUTLIER_SHARE
    return [_marked(worker, limit) for worker in workers]


def _marked(worker: WorkerReadings, limit: float) -> WorkerReadings:
    reading = worker.of(Measure.DUTY)
    if reading.value is None or reading.value >= limit:
        return worker
    outlier = replace(reading, is_outlier=True)
    return replace(worker, readings={**worker.readings, Measure.DUTY: outlier})
