"""Whether the chips are busy, and all workers about as busy as each other."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.run import RunState
from tpudash.store.snapshot import METRICS
from tpudash.store.utilization import METRICS as METRICS_OF_NODES
from tpudash.store.utilization import Measure

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "workers-even",
    "Chips are busy on all workers",
    Scope.NODE,
    why="A slice is as fast as its slowest worker, and idle chips cost as much as busy ones.",
    rank=46,
    source=METRICS,
    group=Group.SLOW,
)
LOW: Final = 40.0
SPREAD: Final = 25.0
NEWEST: Final = 5
BUSY: Final = (Measure.DUTY_CYCLE, Measure.TENSORCORE)


def check(evidence: Evidence) -> Finding:
    """Warn of a low duty cycle, or of one worker far below the others."""
    node, run = evidence.node, evidence.run
    if node is None or run is None or run.state is not RunState.TRAINING:
        return ABOUT.not_applicable(evidence, "nothing trains on it")
    by_worker = _busy(evidence, node.node_id)
    if not by_worker:
        return ABOUT.unknown(evidence, "Cloud Monitoring has no duty cycle of this node")
    level = mean(by_worker.values())
    slowest = min(by_worker, key=lambda worker: by_worker[worker])
    text = (
        f"{level:.0f} % busy over {len(by_worker)} workers"
        if len(by_worker) > 1
        else (f"{level:.0f} % busy")
    )
    if len(by_worker) > 1 and max(by_worker.values()) - by_worker[slowest] > SPREAD:
        return ABOUT.warned(
            evidence,
            f"{text}; worker {slowest} is at {by_worker[slowest]:.0f} %",
            advice="Look at that worker's log and host: the others wait for it.",
            action="pane-logs",
            command=f"tpudash metrics {run.name}",
        )
    if level < LOW:
        return ABOUT.warned(
            evidence,
            text,
            advice="Look at the input first; then use a larger batch, or a smaller type.",
            command=f"tpudash metrics {run.name}",
        )
    return ABOUT.passed(evidence, text)


def _busy(evidence: Evidence, node_id: str) -> dict[str, float]:
    """Return the mean of each worker's newest points in percent, by the first measure there is."""
    for measure in BUSY:
        kind = METRICS_OF_NODES[measure].metric_type
        found: dict[str, list[float]] = {}
        for series in evidence.series.get(node_id, ()):
            if series.metric == kind and series.points:
                scale = 100.0 if series.unit == "1" else 1.0
                points = [point.value * scale for point in series.points[-NEWEST:]]
                found.setdefault(series.worker_id, []).extend(points)
        if found:
            return {worker: mean(values) for worker, values in found.items()}
    return {}
