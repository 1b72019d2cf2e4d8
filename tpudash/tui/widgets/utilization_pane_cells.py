"""The cells of the utilization pane: a value with its unit, or one of five reasons for none."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.metric import NoValue
from tpudash.domain.node import NodeState
from tpudash.tui.format import age, bytes_size
from tpudash.tui.text import safe_text
from tpudash.tui.widgets.row_view import Column
from tpudash.tui.widgets.span_view import Span
from tpudash.tui.widgets.spark import sorted_into_cells, spark_row
from tpudash.tui.widgets.utilization_pane_readings import Measure, Reading, WorkerReadings

if TYPE_CHECKING:
    from datetime import datetime

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
HISTORY: Final = timedelta(minutes=30)
NO_VALUE_WORDS: Final = {
    NoValue.NO_WORKLOAD: ("no work", "muted"),
    NoValue.NOT_YET: ("not yet", "state-creating"),
    NoValue.AGENT_FAILED: ("no agent", "chart-bad"),
    NoValue.STALE: ("stale", "chart-warn"),
    NoValue.NO_DATA: ("no data", "muted"),
}
"""The five kinds of no value, none of which is 0."""
_SHARES: Final = frozenset({Measure.DUTY, Measure.TENSORCORE, Measure.CPU})
_RATES: Final = frozenset({Measure.RECEIVED, Measure.SENT})
LOW_DUTY: Final = 20.0
GIB: Final = 2**30


def worker_name(row: WorkerReadings) -> Span:
    """Return the name of a worker: that of its node, and its number where there are several."""
    is_slice = len(row.node.workers) > 1 or row.worker != "0"
    name = safe_text(row.node.node_id, 60)
    return Span(f"{name}:{row.worker}" if is_slice else name)


def cell_of(row: WorkerReadings, measure: Measure, now: datetime) -> Span:
    """Return the cell of one measure."""
    reading = row.of(measure)
    if reading.reason is not None:
        return _no_value(row, reading, now)
    if measure is Measure.HBM_USED:
        return Span(_hbm(row))
    text = _value(measure, reading.value or 0.0)
    if reading.is_outlier:
        return Span(f"{text}!", "chart-warn", bold=True)
    if measure is Measure.DUTY:
        return Span(text, "chart-warn" if (reading.value or 0.0) < LOW_DUTY else "chart-ok")
    return Span(text)


def _no_value(row: WorkerReadings, reading: Reading, now: datetime) -> Span:
    if reading.reason is NoValue.NO_DATA and row.node.state != NodeState.READY:
        return Span("-", "muted")
    word, variable = NO_VALUE_WORDS[reading.reason or NoValue.NO_DATA]
    if reading.reason is NoValue.STALE and reading.time is not None:
        word = f"{word} {age(reading.time, now, step=60).removesuffix('00s')}"
    return Span(word, variable)


def _value(measure: Measure, value: float) -> str:
    if measure in _SHARES:
        return f"{value:.0f}%"
    text = bytes_size(value).replace("iB", "").replace(" ", "")
    return f"{text}/s" if measure in _RATES else text


def _hbm(row: WorkerReadings) -> str:
    """Return used and total GiB of one worker's chips."""
    used = row.of(Measure.HBM_USED).value or 0.0
    total = row.of(Measure.HBM_TOTAL).value
    if total is None:
        kind = load_catalog().find(row.node.accelerator_type)
        total = None if kind is None else kind.hbm_gib * GIB / max(1, kind.hosts)
    return f"{used / GIB:.1f}/{total / GIB:.0f}G" if total else f"{used / GIB:.1f}G"


def spark_of(row: WorkerReadings, width: int, now: datetime, *, plain: bool) -> Span:
    """Return the duty cycle of the last half hour, or the host's CPU where there is none."""
    reading = row.of(Measure.DUTY)
    measure = Measure.DUTY if reading.history else Measure.CPU
    end = now.timestamp()
    cell = HISTORY.total_seconds() / max(1, width)
    # The right edge moves by whole cells, so that the row changes as seldom as it can.
    edge = (end // cell + 1) * cell
    values = sorted_into_cells(
        row.of(measure).history, edge - HISTORY.total_seconds(), edge, max(0, width)
    )
    bars = spark_row(values, width, low=0, high=100, plain=plain)
    return Span(bars, "chart-line" if measure is Measure.DUTY else "muted")
