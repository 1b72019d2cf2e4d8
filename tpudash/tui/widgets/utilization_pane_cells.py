"""The cells of the utilization pane: a value with its unit, or one of five reasons for none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.metric import NoValue
from tpudash.domain.node import NodeState
from tpudash.store.utilization import METRICS, Cell, Measure, WorkerUtilization
from tpudash.tui.widgets.row_view import Column
from tpudash.tui.widgets.span_view import Span
from tpudash.tui.widgets.spark import Sample, sorted_into_cells, spark_row
from tpudash.wording.format import age, bytes_size
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.domain.node import Node

COLUMNS: Final = (
    Column("WORKER", 12, grow=2),
    Column("DUTY", 9, right=True),
    Column("CPU", 9, right=True, rank=1),
    Column("TENSOR", 9, right=True, rank=5),
    Column("HBM", 10, right=True, rank=3),
    Column("MEMORY", 9, right=True, rank=4),
    Column("IN", 9, right=True, rank=6),
    Column("OUT", 9, right=True, rank=7),
    Column("LAST 30 MIN", 14, rank=2, grow=1),
)
CELLS: Final = {
    "DUTY": Measure.DUTY_CYCLE,
    "TENSOR": Measure.TENSORCORE,
    "HBM": Measure.HBM_USED,
    "CPU": Measure.HOST_CPU,
    "MEMORY": Measure.HOST_MEMORY,
    "IN": Measure.RECEIVED,
    "OUT": Measure.SENT,
}
"""Which measure stands in which column."""
HISTORY: Final = timedelta(minutes=30)
NO_VALUE_WORDS: Final = {
    NoValue.NO_WORKLOAD: ("no work", "muted"),
    NoValue.NOT_YET: ("not yet", "state-creating"),
    NoValue.AGENT_FAILED: ("no agent", "chart-bad"),
    NoValue.STALE: ("stale", "chart-warn"),
    NoValue.NO_DATA: ("no data", "muted"),
}
"""The five kinds of no value, none of which is 0."""
LOW_DUTY: Final = 20.0
OUTLIER_SHARE: Final = 0.7
LEAST_TO_COMPARE: Final = 3
GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One row: a worker of a node.

    Attributes:
        is_outlier: Whether its duty cycle lies far below that of the others of its node.
    """

    node: Node
    worker: WorkerUtilization
    is_outlier: bool = False

    @property
    def key(self) -> str:
        """Unique and stable."""
        return worker_key(self.node, self.worker.worker_id)

    def history(self, measure: Measure) -> list[Sample]:
        """Return all points of a measure as (POSIX time, value), oldest first."""
        return [(point.time.timestamp(), point.value) for point in self.worker.of(measure).history]


def worker_key(node: Node, worker: str) -> str:
    """Return the unique and stable key of one worker."""
    return f"{node.name}:{worker}"


def workers_of(node: Node) -> tuple[str, ...]:
    """Return the numbers of a node's workers; a node always has at least one."""
    return tuple(str(worker.index) for worker in node.workers) or ("0",)


def rows_of(node: Node, workers: Sequence[WorkerUtilization]) -> list[WorkerRow]:
    """Return the rows of a node, with workers marked that lag behind the others."""
    known = [
        value for worker in workers if (value := worker.of(Measure.DUTY_CYCLE).value) is not None
    ]
    limit = median(known) * OUTLIER_SHARE if len(known) >= LEAST_TO_COMPARE else 0.0
    return [
        WorkerRow(node, worker, (worker.of(Measure.DUTY_CYCLE).value or 0.0) < limit)
        for worker in workers
    ]


def worker_name(row: WorkerRow) -> Span:
    """Return the name of a worker: that of its node, and its number where there are several."""
    worker = row.worker.worker_id
    is_slice = len(row.node.workers) > 1 or worker != "0"
    name = safe_text(row.node.node_id, 60)
    return Span(f"{name}:{worker}" if is_slice else name)


def cell_of(row: WorkerRow, measure: Measure, now: datetime) -> Span:
    """Return the cell of one measure."""
    cell = row.worker.of(measure)
    if cell.value is None:
        return _no_value(row.node, cell, now)
    if measure is Measure.HBM_USED:
        return Span(_hbm(row, cell.value))
    text = _value(measure, cell.value)
    if measure is not Measure.DUTY_CYCLE:
        return Span(text)
    if row.is_outlier:
        return Span(f"{text}!", "chart-warn", bold=True)
    return Span(text, "chart-warn" if cell.value < LOW_DUTY else "chart-ok")


def _no_value(node: Node, cell: Cell, now: datetime) -> Span:
    if cell.reason is NoValue.NO_DATA and node.state != NodeState.READY:
        return Span("-", "muted")
    word, variable = NO_VALUE_WORDS[cell.reason or NoValue.NO_DATA]
    if cell.reason is NoValue.STALE and cell.as_of is not None:
        word = f"{word} {age(cell.as_of, now, step=60).removesuffix('00s')}"
    return Span(word, variable)


def _value(measure: Measure, value: float) -> str:
    unit = METRICS[measure].unit
    if unit == "%":
        return f"{value:.0f}%"
    text = bytes_size(value).replace("iB", "").replace(" ", "")
    return f"{text}/s" if unit == "By/s" else text


def _hbm(row: WorkerRow, used: float) -> str:
    """Return used and total GiB of one worker's chips."""
    total = row.worker.of(Measure.HBM_TOTAL).value
    if total is None:
        kind = load_catalog().find(row.node.accelerator_type)
        total = None if kind is None else kind.hbm_gib * GIB / max(1, kind.hosts)
    return f"{used / GIB:.1f}/{total / GIB:.0f}G" if total else f"{used / GIB:.1f}G"


def spark_of(row: WorkerRow, width: int, now: datetime, *, plain: bool) -> Span:
    """Return the duty cycle of the last half hour, or the host's CPU where there is none."""
    has_duty = bool(row.worker.of(Measure.DUTY_CYCLE).history)
    samples = row.history(Measure.DUTY_CYCLE if has_duty else Measure.HOST_CPU)
    cell = HISTORY.total_seconds() / max(1, width)
    # The right edge moves by whole cells, so that the row changes as seldom as it can.
    edge = (now.timestamp() // cell + 1) * cell
    values = sorted_into_cells(samples, edge - HISTORY.total_seconds(), edge, max(0, width))
    bars = spark_row(values, width, low=0, high=100, plain=plain)
    return Span(bars, "chart-line" if has_duty else "muted")
