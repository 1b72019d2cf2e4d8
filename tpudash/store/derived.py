"""What follows from the figures of a run and its node: idle, input-bound, its pace, its share.

Nothing here guesses: what can't be told from the evidence is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import NodeState
from tpudash.store.training_curve import number_in
from tpudash.store.utilization import METRICS, Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Node
    from tpudash.store.snapshot import NodeTimes
    from tpudash.store.utilization import NodeUtilization

IDLE_AFTER: Final = timedelta(minutes=10)
BUSY_PERCENT: Final = 1.0
STRAGGLER_SHARE: Final = 0.7
LEAST_TO_COMPARE: Final = 3
SMOOTHED: Final = 5
"""Events whose median is a pace; a single one may be far off."""
INPUT_BOUND: Final = 0.2
AGENT_LABEL: Final[Mapping[str, str]] = {"source": "agent"}
_COMPARED: Final = (Measure.DUTY_CYCLE, Measure.TENSORCORE, Measure.HOST_CPU)
_AGENT_FIGURES: Final = {
    "cpu_fraction": (Measure.HOST_CPU, 100.0),
    "memory_used_bytes": (Measure.HOST_MEMORY, 1.0),
}
_CHIP_FIGURES: Final = {
    "duty_cycle_percent": Measure.DUTY_CYCLE,
    "tensorcore_percent": Measure.TENSORCORE,
    "hbm_bandwidth_percent": Measure.HBM_BANDWIDTH,
    "hbm_used_bytes": Measure.HBM_USED,
    "hbm_total_bytes": Measure.HBM_TOTAL,
}
MOST_CHIPS: Final = 16


@dataclass(frozen=True, slots=True)
class Idle:
    """A READY node that has done nothing for a while.

    Attributes:
        since: When it last worked, or when it became READY.
        wasted_usd: What that time has cost, or None where no price is known.
    """

    since: datetime
    wasted_usd: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a run is, against its own best and against the chips.

    Attributes:
        now: Examples a second, the median of the newest events.
        best: The most that it has reached for as many events.
        model_flops_utilization: Share of the chips' bfloat16 peak, or None where the model's
            FLOPs for each example, or the peak, are not known.
    """

    now: float
    best: float
    model_flops_utilization: float | None = None

    @property
    def share_of_best(self) -> float:
        """The present pace as a share of the best."""
        return self.now / self.best if self.best > 0 else 0.0


def idle(
    node: Node,
    times: NodeTimes | None,
    worked: datetime | None,
    rate_usd: float | None,
    now: datetime,
) -> Idle | None:
    """Say since when a READY node has done nothing, or None where it works or may yet begin.

    Args:
        node: The node as it was last listed.
        times: What was watched of its life, or None.
        worked: Its last step, or when its accelerator was last at work; None for never.
        rate_usd: US dollars an hour, or None where no price is known.
        now: The time to reckon by.
    """
    if node.state != NodeState.READY:
        return None
    ready = (times.ready_since if times else None) or node.create_time
    since = max((moment for moment in (ready, worked) if moment is not None), default=None)
    if since is None or now - since < IDLE_AFTER:
        return None
    hours = (now - since).total_seconds() / 3600
    return Idle(since, None if rate_usd is None else rate_usd * hours)


def last_busy(found: NodeUtilization) -> datetime | None:
    """Return when the accelerator of any worker was last measured at work, or None.

    A job that tells of no steps, such as one that was not launched from here, is seen by this.
    """
    moments = (
        point.time
        for worker in found.workers
        for measure in (Measure.DUTY_CYCLE, Measure.TENSORCORE)
        for point in worker.of(measure).history
        if point.value >= BUSY_PERCENT
    )
    return max(moments, default=None)


def stragglers(found: NodeUtilization) -> dict[str, float]:
    """Return the workers far below the others, with their share of the median.

    They are told by the first of duty cycle, TensorCore and host CPU that enough of them have.
    """
    for measure in _COMPARED:
        values = {
            worker.worker_id: value
            for worker in found.workers
            if (value := worker.of(measure).value) is not None
        }
        middle = median(values.values()) if len(values) >= LEAST_TO_COMPARE else 0.0
        if middle > 0:
            return {
                name: value / middle
                for name, value in values.items()
                if value < middle * STRAGGLER_SHARE
            }
    return {}


def pace(
    rates: Sequence[float], flops_per_example: float | None, accelerator_type: str
) -> Pace | None:
    """Return the pace of a run from its examples a second, oldest first; None without any.

    Args:
        rates: Examples a second of the whole run, as the `step` events told them.
        flops_per_example: FLOPs that training takes for one example, or None.
        accelerator_type: Of the node that it runs on now.
    """
    if not rates:
        return None
    stretch = min(SMOOTHED, len(rates))
    paces = [median(rates[at : at + stretch]) for at in range(len(rates) - stretch + 1)]
    kind = load_catalog().find(accelerator_type)
    tflops = kind.generation.bf16_tflops_per_chip if kind else None
    share = None
    if flops_per_example and kind and tflops:
        share = paces[-1] * flops_per_example / (kind.chips * tflops * 1e12)
    return Pace(paces[-1], max(paces), share)


def flops_per_example(entries: Iterable[LogEntry], run: str) -> float | None:
    """Return what the newest event that tells it says a run's example costs in FLOPs, or None."""
    newest: LogEntry | None = None
    value = None
    for entry in entries:
        if entry.run != run or entry.payload is None:
            continue
        told = flops_told(entry)
        if told is not None and (newest is None or entry.timestamp >= newest.timestamp):
            newest, value = entry, told
    return value


def flops_told(entry: LogEntry) -> float | None:
    """Return the FLOPs for each example that an event tells: its own, or among its metrics."""
    payload = entry.payload or {}
    for holder in (payload, payload.get("metrics"), payload.get("performance")):
        told = number_in(holder, "flops_per_example") if isinstance(holder, dict) else None
        if told is not None and told > 0:
            return told
    return None


def agent_series(entries: Iterable[LogEntry]) -> tuple[MetricSeries, ...]:
    """Return the figures that agents sampled on their nodes (`host` events) as time series.

    The TPU runtime's own figures stand in `chips`, one object for each chip, where the node's
    libtpu offers them.
    """
    found: list[MetricSeries] = []
    for entry in entries:
        if entry.event == "host" and entry.node_id and entry.payload is not None:
            found += _of_host(entry, entry.payload)
    return tuple(found)


def _of_host(entry: LogEntry, payload: Mapping[str, object]) -> list[MetricSeries]:
    found = []
    for name, (measure, factor) in _AGENT_FIGURES.items():
        value = number_in(payload, name)
        if value is not None:
            found.append(_series(entry, measure, value * factor, {}))
    chips = payload.get("chips")
    for at, chip in enumerate(chips[:MOST_CHIPS] if isinstance(chips, list) else ()):
        for name, measure in _CHIP_FIGURES.items():
            value = number_in(chip, name) if isinstance(chip, dict) else None
            if value is not None:
                found.append(_series(entry, measure, value, {"accelerator_id": str(at)}))
    return found


def _series(
    entry: LogEntry, measure: Measure, value: float, labels: Mapping[str, str]
) -> MetricSeries:
    metric = METRICS[measure]
    return MetricSeries(
        metric.metric_type,
        entry.node_id,
        entry.zone or None,
        entry.worker_id or "0",
        metric.unit,
        (MetricPoint(entry.timestamp, value),),
        {**AGENT_LABEL, **labels},
    )
