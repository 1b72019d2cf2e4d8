"""Cells of the utilization pane and its training curves, apart from any screen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.metric import MetricPoint, NoValue
from tpudash.domain.node import Node, Worker
from tpudash.store.log_ring import LogRing
from tpudash.store.utilization import METRICS, Cell, Measure, WorkerUtilization
from tpudash.tui.widgets.utilization_pane_cells import WorkerRow, cell_of, rows_of, spark_of
from tpudash.tui.widgets.utilization_pane_curves import MAX_STEPS, STRETCHES, CurveBook

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
NAME = "projects/demo/locations/us-central1-b/nodes/demo-1"
NODE = Node(NAME, "READY", accelerator_type="v2-8", workers=(Worker(0, "10.0.0.2"),))
DEAD = Node(NAME, "PREEMPTED", accelerator_type="v2-8")


def worker(number: str = "0", **cells: Cell) -> WorkerUtilization:
    missing = {
        measure: Cell(metric.unit, reason=NoValue.NO_DATA) for measure, metric in METRICS.items()
    }
    return WorkerUtilization(
        number, {**missing, **{Measure(name): cell for name, cell in cells.items()}}
    )


def duty(value: float | None, reason: NoValue | None = None) -> WorkerUtilization:
    as_of = NOW - timedelta(minutes=16 if reason else 0)
    return worker(duty_cycle=Cell("%", value, reason, as_of))


def test_zero_and_the_five_kinds_of_no_value_all_differ() -> None:
    cells = [
        cell_of(WorkerRow(NODE, duty(None, reason)), Measure.DUTY_CYCLE, NOW) for reason in NoValue
    ]
    cells.append(cell_of(WorkerRow(NODE, duty(0.0)), Measure.DUTY_CYCLE, NOW))
    assert {cell.text for cell in cells} == {
        "no work",
        "not yet",
        "no agent",
        "stale 16m",
        "no data",
        "0%",
    }


def test_a_node_that_is_not_up_is_not_said_to_lack_anything() -> None:
    assert (
        cell_of(WorkerRow(DEAD, duty(None, NoValue.NO_DATA)), Measure.DUTY_CYCLE, NOW).text == "-"
    )


@pytest.mark.parametrize(
    ("measure", "value", "text"),
    [
        (Measure.HOST_CPU, 31.6, "32%"),
        (Measure.HOST_MEMORY, 1.25 * 2**30, "1.2G"),
        (Measure.RECEIVED, 200.0, "200B/s"),
        (Measure.HBM_USED, 2.0 * 2**30, "2.0/64G"),
    ],
)
def test_values_have_their_units(measure: Measure, value: float, text: str) -> None:
    cells = {**worker().cells, measure: Cell(METRICS[measure].unit, value)}
    row = WorkerRow(NODE, WorkerUtilization("0", cells))
    assert cell_of(row, measure, NOW).text == text


def test_a_straggler_among_workers_is_marked_and_two_are_not_compared() -> None:
    workers = [duty(value) for value in (90.0, 91.0, 20.0, 89.0)]
    rows = rows_of(NODE, workers)
    assert [row.is_outlier for row in rows] == [False, False, True, False]
    assert cell_of(rows[2], Measure.DUTY_CYCLE, NOW).text == "20%!"
    assert not any(row.is_outlier for row in rows_of(NODE, workers[1:3]))


def test_the_row_of_bars_shows_half_an_hour_and_its_gaps() -> None:
    times = (1730, 1680, 1620, 600, 540, 480, 10)
    points = tuple(MetricPoint(NOW - timedelta(seconds=age), 100.0) for age in times)
    row = WorkerRow(NODE, worker(duty_cycle=Cell("%", 100.0, None, NOW, points)))
    bars = spark_of(row, 30, NOW, plain=False)
    assert len(bars.text) == 30
    assert bars.text.count("█") == 7
    assert bars.variable == "chart-line"
    nothing = spark_of(WorkerRow(NODE, worker()), 30, NOW, plain=True)
    assert nothing.text == " " * 30


def step_entry(second: float, step: object, run: str = "demo", **fields: object) -> LogEntry:
    payload = {"event": "step", "step": step, "target_step": 600, **fields}
    moment = NOW + timedelta(seconds=second)
    return LogEntry(moment, Severity.INFO, "", insert_id=f"{run}{second}", run=run, payload=payload)


def test_curves_follow_the_ring_in_order_of_time() -> None:
    ring = LogRing()
    book = CurveBook(ring)
    assert not book.sync()
    ring.add([step_entry(1, 10, loss=2.0), step_entry(3, 30, loss=1.0, step_time_s="fast")])
    assert book.sync()
    ring.add([step_entry(2, 20, loss=1.5), step_entry(9, 5, run="other", loss=9.0)])
    assert book.sync()
    assert not book.sync()
    assert [value for _, value in book.samples("demo", "loss")] == [2.0, 1.5, 1.0]
    assert book.samples("demo", "step_time_s") == []
    newest = book.newest("demo")
    assert newest is not None
    assert (newest.step, newest.target) == (30, 600)
    assert book.newest("unheard of") is None


def test_a_curve_of_any_length_is_thinned_and_keeps_both_ends() -> None:
    ring = LogRing()
    book = CurveBook(ring)
    ring.add(step_entry(at, at, loss=float(at)) for at in range(10 * MAX_STEPS))
    book.sync()
    values = [value for _, value in book.samples("demo", "loss")]
    assert MAX_STEPS // 2 < len(values) <= MAX_STEPS
    assert values == sorted(values)
    assert values[0] == 0.0
    assert values[-100:] == [float(at) for at in range(10 * MAX_STEPS - 100, 10 * MAX_STEPS)]
    assert max(later - sooner for sooner, later in pairwise(values)) <= 5 * values[-1] / STRETCHES
