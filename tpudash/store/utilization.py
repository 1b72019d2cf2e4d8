"""Utilization of a node: each cell is a value with its age, or the reason why there is none.

Which reason it is follows from evidence: the node's state, what the run says, when its agent was
last heard, and whether other metrics of the node arrive. A measured 0 % is a value.
Source of the metric types: https://cloud.google.com/monitoring/api/metrics_gcp_p_z (tpu)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from tpudash.domain.metric import MetricPoint, NoValue
from tpudash.domain.node import TRANSIENT_STATES, NodeState
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import SourceState
from tpudash.store.training_curve import CURVE_UNITS, TrainingCurve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run
    from tpudash.store.snapshot import NodeTimes, SourceStatus

GOOGLE_PERIOD: Final = timedelta(seconds=60)
GOOGLE_LAG: Final = timedelta(seconds=180)
"""How long after its period a point may become visible."""
CLOCK_SKEW: Final = timedelta(minutes=2)
PERIODS_UNTIL_STALE: Final = 3
NEWEST_POINTS: Final = 21
AGENT_SILENCE: Final = timedelta(seconds=120)
"""The agent writes at least every 15 s while it trains; after this it counts as silent."""


class Measure(StrEnum):
    """What is measured of a worker."""

    DUTY_CYCLE = "duty_cycle"
    TENSORCORE = "tensorcore_utilization"
    HBM_BANDWIDTH = "hbm_bandwidth_utilization"
    HBM_USED = "hbm_used_bytes"
    HBM_TOTAL = "hbm_total_bytes"
    HOST_CPU = "host_cpu_utilization"
    HOST_MEMORY = "host_memory_used_bytes"
    RECEIVED = "received_bytes_per_second"
    SENT = "sent_bytes_per_second"


@dataclass(frozen=True, slots=True)
class Metric:
    """How a measure is found in Cloud Monitoring.

    Attributes:
        metric_type: The type in Cloud Monitoring.
        unit: UCUM unit of the cells (`%`, `By`, `By/s`), whatever the series' own unit.
        adds_up: Whether the values of chips and workers add up; else their mean is shown.
        of_accelerator: Whether it needs a workload on the chips.
        is_count: Whether the series counts bytes for each period, to be shown for each second.
    """

    metric_type: str
    unit: str
    adds_up: bool = False
    of_accelerator: bool = False
    is_count: bool = False


def _accelerator(name: str, unit: str, *, adds_up: bool = False) -> Metric:
    return Metric(f"tpu.googleapis.com/accelerator/{name}", unit, adds_up, of_accelerator=True)


METRICS: Final[Mapping[Measure, Metric]] = {
    Measure.DUTY_CYCLE: _accelerator("duty_cycle", "%"),
    Measure.TENSORCORE: _accelerator("tensorcore_utilization", "%"),
    Measure.HBM_BANDWIDTH: _accelerator("memory_bandwidth_utilization", "%"),
    Measure.HBM_USED: _accelerator("memory_used", "By", adds_up=True),
    Measure.HBM_TOTAL: _accelerator("memory_total", "By", adds_up=True),
    Measure.HOST_CPU: Metric("tpu.googleapis.com/cpu/utilization", "%"),
    Measure.HOST_MEMORY: Metric("tpu.googleapis.com/memory/usage", "By", adds_up=True),
    Measure.RECEIVED: Metric(
        "tpu.googleapis.com/network/received_bytes_count", "By/s", adds_up=True, is_count=True
    ),
    Measure.SENT: Metric(
        "tpu.googleapis.com/network/sent_bytes_count", "By/s", adds_up=True, is_count=True
    ),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure, or why there is none.

    Attributes:
        value: In `unit`; None if and only if there is a `reason`.
        as_of: When the newest point was taken, also where that is too old to be shown as a value.
        history: Every point that is known, oldest first, in `unit`.
    """

    unit: str
    value: float | None = None
    reason: NoValue | None = None
    as_of: datetime | None = None
    history: tuple[MetricPoint, ...] = ()

    def age(self, now: datetime) -> timedelta | None:
        """Return how old the newest point is, or None; a clock that is ahead makes it 0."""
        return None if self.as_of is None else max(timedelta(0), now - self.as_of)


@dataclass(frozen=True, slots=True)
class WorkerUtilization:
    """All cells of one worker; `worker_id` is as Cloud Monitoring names it."""

    worker_id: str
    cells: Mapping[Measure, Cell]

    def of(self, measure: Measure) -> Cell:
        """Return one cell."""
        return self.cells[measure]


@dataclass(frozen=True, slots=True)
class NodeUtilization:
    """All cells of a node.

    Attributes:
        node: Full resource name.
        workers: In order of their numbers; at least one.
        training: The figures of the run on it, by their names in `CURVE_UNITS`.
        note: What is wrong with the source of the metrics, or "".
    """

    node: str
    workers: tuple[WorkerUtilization, ...]
    training: Mapping[str, Cell] = field(default_factory=dict)
    note: str = ""

    def of(self, measure: Measure) -> Cell:
        """Return one measure over all workers: their sum or their mean, as old as the oldest.

        One worker without a value leaves the whole without one, for the same reason.
        """
        cells = [worker.cells[measure] for worker in self.workers]
        missing = next((cell for cell in cells if cell.reason is not None), None)
        if missing is not None:
            return Cell(missing.unit, reason=missing.reason, as_of=missing.as_of)
        values = [cell.value for cell in cells if cell.value is not None]
        total = sum(values)
        return Cell(
            cells[0].unit,
            total if METRICS[measure].adds_up else total / len(values),
            as_of=min(cell.as_of for cell in cells if cell.as_of is not None),
            history=_merge([cell.history for cell in cells], METRICS[measure]),
        )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What decides the reason for a missing value."""

    now: datetime
    node_is_ready: bool
    node_is_coming: bool
    is_young: bool
    is_training: bool
    may_be_starting: bool
    agent_is_silent: bool
    source_has_answered: bool


def read_utilization(
    node: Node,
    series: Sequence[MetricSeries],
    run: Run | None,
    source: SourceStatus,
    now: datetime,
    *,
    times: NodeTimes | None = None,
    curve: TrainingCurve | None = None,
) -> NodeUtilization:
    """Return what is known of a node's utilization.

    Args:
        node: The node as it was last listed.
        series: Series of any nodes; those joined to another node, or to none, are left out.
        run: The run that the node was made for, or None.
        source: How the source of the metrics is doing.
        now: The time to reckon ages by.
        times: What was watched of the node's life; without it, its creation counts.
        curve: The run's `step` events; without it, the run's own record is read.
    """
    own = [
        one for one in series if one.node_id == node.node_id and one.zone in {None, "", node.zone}
    ]
    evidence = _weigh(node, run, source, now, times)
    by_worker: defaultdict[str, list[MetricSeries]] = defaultdict(list)
    for one in own:
        by_worker[_worker_number(one.worker_id)].append(one)
    expected = {str(worker.index) for worker in node.workers}
    names = sorted(by_worker.keys() | expected or {"0"}, key=lambda name: (len(name), name))
    workers = tuple(
        WorkerUtilization(name, _read_worker(by_worker[name], evidence)) for name in names
    )
    training = _read_training(run, curve, evidence)
    note = source.title if source.state is SourceState.FAILING else ""
    return NodeUtilization(node.name, workers, training, note)


def _weigh(
    node: Node, run: Run | None, source: SourceStatus, now: datetime, times: NodeTimes | None
) -> _Evidence:
    record = max(run.attempts, key=lambda one: one.attempt, default=None) if run else None
    newest = record.attempt if record else None
    on_this_node = None in {newest, node.attempt} or newest == node.attempt
    state = run.state if run and on_this_node else None
    ready_since = (times.ready_since if times else None) or node.create_time
    started = record.started if record and on_this_node else None
    births = [moment for moment in (ready_since, started) if moment is not None]
    heard = run.last_heard if run else None
    is_training = state in {*AT_WORK, RunState.STALLED}
    return _Evidence(
        now=now,
        node_is_ready=node.state == NodeState.READY,
        node_is_coming=node.state in TRANSIENT_STATES - {NodeState.DELETING, NodeState.STOPPING},
        is_young=any(now - moment < GOOGLE_PERIOD + GOOGLE_LAG for moment in births),
        is_training=is_training,
        may_be_starting=state in {RunState.LAUNCHING, RunState.WAITING, RunState.RESUMING},
        agent_is_silent=is_training
        and (state is RunState.STALLED or (heard is not None and now - heard > AGENT_SILENCE)),
        source_has_answered=source.last_success is not None,
    )


def _read_worker(series: Iterable[MetricSeries], evidence: _Evidence) -> dict[Measure, Cell]:
    by_type: defaultdict[str, list[MetricSeries]] = defaultdict(list)
    for one in series:
        by_type[one.metric].append(one)
    return {
        measure: _best_cell(by_type[metric.metric_type], metric, evidence)
        for measure, metric in METRICS.items()
    }


def _best_cell(series: Sequence[MetricSeries], metric: Metric, evidence: _Evidence) -> Cell:
    """Read what Cloud Monitoring says, or what the node's agent says where that has no value."""
    sampled = [one for one in series if one.labels.get("source") == "agent"]
    cell = _read_cell([one for one in series if one not in sampled], metric, evidence)
    if cell.value is not None or not sampled:
        return cell
    return _read_cell(sampled, metric, evidence)


def _read_cell(series: Sequence[MetricSeries], metric: Metric, evidence: _Evidence) -> Cell:
    periods = [_period(one.points) for one in series]
    period = min((one for one in periods if one is not None), default=GOOGLE_PERIOD)
    histories = [_in_unit(one, metric, period) for one in series if one.points]
    limit = evidence.now + CLOCK_SKEW
    # A point of the future would never grow old, so it counts only when its time has come.
    history = tuple(point for point in _merge(histories, metric) if point.time <= limit)
    if not history:
        return Cell(metric.unit, reason=_why_missing(metric, evidence))
    last = history[-1]
    lag = GOOGLE_LAG if period >= GOOGLE_PERIOD else period
    if evidence.now - last.time > PERIODS_UNTIL_STALE * period + lag:
        reason = _why_old(metric, evidence)
        return Cell(metric.unit, reason=reason, as_of=last.time, history=history)
    return Cell(metric.unit, last.value, as_of=last.time, history=history)


def _why_old(metric: Metric, evidence: _Evidence) -> NoValue:
    """Say why a metric's points have ended."""
    if metric.of_accelerator and evidence.agent_is_silent:
        return NoValue.AGENT_FAILED
    if metric.of_accelerator and _is_idle(evidence):
        return NoValue.NO_WORKLOAD
    return NoValue.STALE


def _why_missing(metric: Metric, evidence: _Evidence) -> NoValue:
    """Say why a metric has no point at all."""
    if metric.of_accelerator and _is_idle(evidence):
        return NoValue.NO_WORKLOAD
    waits = evidence.is_young and evidence.node_is_ready
    if waits or evidence.node_is_coming or not evidence.source_has_answered:
        return NoValue.NOT_YET
    if evidence.agent_is_silent:
        return NoValue.AGENT_FAILED
    return NoValue.NO_DATA


def _is_idle(evidence: _Evidence) -> bool:
    busy = evidence.is_training or evidence.may_be_starting
    return evidence.node_is_ready and not busy


def _read_training(
    run: Run | None, curve: TrainingCurve | None, evidence: _Evidence
) -> dict[str, Cell]:
    recorded: dict[str, float | None] = (
        {
            "loss": run.loss,
            "accuracy": run.accuracy,
            "examples_per_second": run.examples_per_second,
        }
        if run
        else {}
    )
    heard = run.last_heard if run else None
    return {
        name: _training_cell(
            unit, curve.history(name) if curve else (), recorded.get(name), heard, evidence
        )
        for name, unit in CURVE_UNITS.items()
    }


def _training_cell(
    unit: str,
    history: tuple[MetricPoint, ...],
    recorded: float | None,
    heard: datetime | None,
    evidence: _Evidence,
) -> Cell:
    """Read one figure of the run; one that is over keeps its last value, with its age."""
    last = history[-1] if history else None
    if last is None and recorded is not None and heard is not None:
        last = MetricPoint(heard, recorded)
    if last is None:
        if evidence.agent_is_silent:
            reason = NoValue.AGENT_FAILED
        elif evidence.is_training or evidence.may_be_starting or evidence.node_is_coming:
            reason = NoValue.NOT_YET if _is_new(evidence) else NoValue.NO_DATA
        else:
            reason = NoValue.NO_WORKLOAD
        return Cell(unit, reason=reason)
    if evidence.is_training and evidence.now - last.time > AGENT_SILENCE:
        reason = NoValue.AGENT_FAILED if evidence.agent_is_silent else NoValue.STALE
        return Cell(unit, reason=reason, as_of=last.time, history=history)
    return Cell(unit, last.value, as_of=last.time, history=history)


def _is_new(evidence: _Evidence) -> bool:
    return evidence.is_young or evidence.may_be_starting or evidence.node_is_coming


def _merge(histories: Sequence[Sequence[MetricPoint]], metric: Metric) -> tuple[MetricPoint, ...]:
    """Join the histories of chips, cores or workers into one.

    Where values add up, only moments at which all of them reported count, since a sum over a part
    would look like a fall.
    """
    by_time: defaultdict[datetime, list[float]] = defaultdict(list)
    for history in histories:
        for point in history:
            by_time[point.time].append(point.value)
    least = len(histories) if metric.adds_up else 1
    return tuple(
        MetricPoint(time, sum(values) if metric.adds_up else sum(values) / len(values))
        for time, values in sorted(by_time.items())
        if len(values) >= least
    )


def _in_unit(series: MetricSeries, metric: Metric, period: timedelta) -> tuple[MetricPoint, ...]:
    """Return a series' points in the unit of the cell."""
    factor = 1.0
    if metric.is_count and series.unit != "By/s":
        factor = 1 / period.total_seconds()
    elif metric.unit == "%" and series.unit in {"1", "10^2.%"}:
        factor = 100.0
    return tuple(MetricPoint(point.time, point.value * factor) for point in series.points)


def _period(points: Sequence[MetricPoint]) -> timedelta | None:
    """Return the usual distance of the newest points (older ones may be thinned), or None."""
    newest = points[-NEWEST_POINTS:]
    gaps = [(later.time - earlier.time).total_seconds() for earlier, later in pairwise(newest)]
    return timedelta(seconds=median(gaps)) if gaps and median(gaps) > 0 else None


def _worker_number(worker_id: str) -> str:
    """Return the number of a worker, which is what its id ends in."""
    digits = worker_id[len(worker_id.rstrip("0123456789")) :]
    return str(int(digits)) if digits else "0"
