"""A value, zero, and the five reasons for no value are told apart by evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.metric import MetricPoint, MetricSeries, NoValue
from tpudash.domain.node import Node, Worker
from tpudash.store.log_ring import LogRing
from tpudash.store.snapshot import NodeTimes
from tpudash.tui.widgets.utilization_pane_cells import cell_of
from tpudash.tui.widgets.utilization_pane_curves import MAX_STEPS, CurveBook
from tpudash.tui.widgets.utilization_pane_readings import (
    GOOGLE_PERIOD,
    Evidence,
    Measure,
    Reading,
    read_node,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
NODE = Node(
    "projects/demo/locations/us-central1-b/nodes/demo-1",
    "READY",
    accelerator_type="v2-8",
    create_time=NOW - timedelta(hours=1),
    workers=(Worker(0, "10.0.0.2"),),
)


def series(
    metric: str,
    values: Sequence[float],
    worker: str = "0",
    unit: str = "%",
    end_s: float = 0,
    **labels: str,
) -> MetricSeries:
    points = tuple(
        MetricPoint(NOW - timedelta(seconds=end_s + 60 * (len(values) - 1 - at)), value)
        for at, value in enumerate(values)
    )
    name = f"tpu.googleapis.com/{metric}"
    return MetricSeries(name, "demo-1", "us-central1-b", worker, unit, points, labels)


def evidence(*, is_training: bool = True, ready_s: float = 3_600, period_s: float = 60) -> Evidence:
    ready = NOW - timedelta(seconds=ready_s)
    times = NodeTimes(ready, ready, ready_since=ready)
    return Evidence(NOW, timedelta(seconds=period_s), times, is_training)


def duty(parts: Sequence[MetricSeries], facts: Evidence, node: Node = NODE) -> Reading:
    return read_node(node, parts, facts)[0].of(Measure.DUTY)


CPU = series("cpu/utilization", [30, 31, 32])


def test_a_value_and_zero_are_values() -> None:
    assert duty([CPU, series("accelerator/duty_cycle", [50, 87.4])], evidence()).value == 87.4
    zero = duty([series("accelerator/duty_cycle", [0, 0])], evidence())
    assert (zero.value, zero.reason) == (0, None)


def test_each_reason_has_its_evidence() -> None:
    old = series("accelerator/duty_cycle", [50, 60], end_s=1_800)
    assert duty([], evidence(ready_s=30)).reason is NoValue.NOT_YET
    assert duty([CPU], evidence(is_training=False)).reason is NoValue.NO_WORKLOAD
    assert duty([CPU], evidence(is_training=True)).reason is NoValue.NO_DATA
    assert duty([CPU, old], evidence(is_training=True)).reason is NoValue.STALE
    assert duty([CPU, old], evidence(is_training=False)).reason is NoValue.NO_WORKLOAD
    cpu = read_node(NODE, [], evidence())[0].of(Measure.CPU)
    assert cpu.reason is NoValue.AGENT_FAILED
    dead = replace(NODE, state="PREEMPTED")
    assert duty([], evidence(), dead).reason is NoValue.NO_DATA


def test_the_node_may_be_as_young_as_the_metrics_are_late() -> None:
    assert evidence().lag == timedelta(seconds=300)
    assert evidence(period_s=5).lag == timedelta(seconds=15)
    assert duty([], evidence(ready_s=20, period_s=5)).reason is NoValue.NO_DATA
    assert evidence().period == GOOGLE_PERIOD


def test_cells_of_all_kinds_differ() -> None:
    texts = set()
    for reason in NoValue:
        row = replace(
            read_node(NODE, [], evidence())[0],
            readings={Measure.DUTY: Reading(None, reason, NOW - timedelta(minutes=16))},
        )
        texts.add(cell_of(row, Measure.DUTY, NOW).text)
    row = read_node(NODE, [series("accelerator/duty_cycle", [0])], evidence())[0]
    texts.add(cell_of(row, Measure.DUTY, NOW).text)
    assert texts == {"no work", "not yet", "no agent", "stale 16m", "no data", "0%"}


def test_chips_are_averaged_their_memory_summed_and_worker_ids_joined() -> None:
    parts = [
        series("accelerator/duty_cycle", [80], "demo-1-w-0", accelerator_id="0"),
        series("accelerator/duty_cycle", [60], "demo-1-w-0", accelerator_id="1"),
        series("accelerator/memory_used", [2**30], "demo-1-w-0", "By", accelerator_id="0"),
        series("accelerator/memory_used", [2**30], "demo-1-w-0", "By", accelerator_id="1"),
        CPU,
    ]
    (row,) = read_node(NODE, parts, evidence())
    assert row.of(Measure.DUTY).value == 70
    assert row.of(Measure.HBM_USED).value == 2 * 2**30
    assert cell_of(row, Measure.HBM_USED, NOW).text == "2.0/64G"
    assert cell_of(row, Measure.CPU, NOW).text == "32%"


def test_counted_bytes_become_a_rate() -> None:
    parts = [series("network/received_bytes_count", [6_000, 12_000], unit="By")]
    (row,) = read_node(NODE, parts, evidence())
    assert row.of(Measure.RECEIVED).value == 200
    assert cell_of(row, Measure.RECEIVED, NOW).text == "200B/s"
    parts = [series("network/received_bytes_count", [500], unit="By/s")]
    assert read_node(NODE, parts, evidence())[0].of(Measure.RECEIVED).value == 500


def test_a_straggler_among_workers_is_marked_and_two_are_not_compared() -> None:
    node = replace(NODE, workers=tuple(Worker(at, "10.0.0.2") for at in range(4)))
    values = (90, 91, 20, 89)
    parts = [
        series("accelerator/duty_cycle", [value], f"demo-1-w-{at}")
        for at, value in enumerate(values)
    ]
    rows = read_node(node, parts, evidence())
    assert [row.worker for row in rows] == ["0", "1", "2", "3"]
    assert [row.of(Measure.DUTY).is_outlier for row in rows] == [False, False, True, False]
    assert cell_of(rows[2], Measure.DUTY, NOW).text == "20%!"
    pair = replace(NODE, workers=node.workers[:2])
    assert not any(
        row.of(Measure.DUTY).is_outlier for row in read_node(pair, parts[1:3], evidence())
    )


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


def test_curves_are_bounded() -> None:
    ring = LogRing()
    book = CurveBook(ring)
    ring.add(step_entry(at, at, loss=1.0) for at in range(MAX_STEPS + 500))
    book.sync()
    assert len(book.samples("demo", "loss")) == MAX_STEPS
