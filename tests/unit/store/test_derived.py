"""What follows from figures, and what bad answers of Cloud Monitoring lead to."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.tui.factories import NOW, add_logs, make_entry, make_node
from tpudash.domain.metric import MetricPoint, MetricSeries, NoValue
from tpudash.domain.node import Worker
from tpudash.store.changes import SeriesRead
from tpudash.store.derived import flops_per_example, idle, last_busy, pace, stragglers
from tpudash.store.series_book import SeriesBook
from tpudash.store.snapshot import NodeTimes, SourceState, SourceStatus
from tpudash.store.store import Store
from tpudash.store.utilization import METRICS, Measure, NodeUtilization, read_utilization

DUTY = METRICS[Measure.DUTY_CYCLE].metric_type
CPU = METRICS[Measure.HOST_CPU].metric_type
OK = SourceStatus("metrics", SourceState.OK, NOW)


def series(
    metric: str, *points: tuple[float, float], worker: str = "0", unit: str = "%"
) -> MetricSeries:
    made = tuple(MetricPoint(NOW + timedelta(seconds=at), value) for at, value in points)
    return MetricSeries(metric, "demo-1", "us-central1-b", worker, unit, made)


def cpu(*found: MetricSeries) -> tuple[float | None, NoValue | None]:
    cell = read_utilization(make_node(), found, None, OK, NOW).workers[0].of(Measure.HOST_CPU)
    return cell.value, cell.reason


def test_bad_answers_are_shown_for_what_they_are() -> None:
    assert cpu() == (None, NoValue.NO_DATA)
    assert cpu(series(CPU)) == (None, NoValue.NO_DATA)
    assert cpu(series(CPU, (-60, 40))) == (40.0, None)
    assert cpu(series(CPU, (-60, 40), (86_400, 99))) == (40.0, None)
    assert cpu(series(CPU, (86_400, 99))) == (None, NoValue.NO_DATA)


def test_remembered_points_that_lie_far_apart_do_not_make_a_value_seem_fresh() -> None:
    remembered = [(-600.0 * at, 40.0) for at in range(100, 1, -1)]
    fresh = [(-1_000.0 + 5 * at, 41.0) for at in range(30)]
    value, reason = cpu(series(CPU, *remembered, *fresh))
    assert (value, reason) == (None, NoValue.STALE)


def test_what_is_no_number_is_never_a_point_and_a_new_unit_begins_anew() -> None:
    book = SeriesBook()
    book.add([series(CPU, (-120, 10), (-60, math.nan), (0, math.inf))])
    assert [point.value for point in book.of("demo-1")[0].points] == [10]
    book.add([series(CPU, (0, 0.5), unit="1")])
    (found,) = book.of("demo-1")
    assert (found.unit, [point.value for point in found.points]) == ("1", [0.5])
    assert cpu(found) == (50.0, None)


def test_a_ready_node_without_steps_is_idle_and_says_what_it_wastes() -> None:
    node, hour = make_node(), timedelta(hours=1)
    times = NodeTimes(NOW - hour, NOW - hour, ready_since=NOW - hour)
    found = idle(node, times, None, 4.0, NOW)
    assert found is not None
    assert found.since == NOW - hour
    assert found.wasted_usd == pytest.approx(4.0)
    later = idle(node, times, NOW - timedelta(minutes=30), None, NOW)
    assert later is not None
    assert (later.since, later.wasted_usd) == (NOW - timedelta(minutes=30), None)
    assert idle(node, times, NOW - timedelta(minutes=9), 4.0, NOW) is None
    assert idle(replace(node, state="PREEMPTED"), times, None, 4.0, NOW) is None
    assert idle(replace(node, create_time=None), None, None, 4.0, NOW) is None


def test_a_busy_accelerator_is_not_idle_although_no_step_is_told() -> None:
    def found(*points: tuple[float, float]) -> NodeUtilization:
        return read_utilization(make_node(), [series(DUTY, *points)], None, OK, NOW)

    assert last_busy(found((-900, 80.0), (-120, 0.0))) == NOW - timedelta(minutes=15)
    assert last_busy(found((-60, 0.0))) is None
    node = make_node(run=None)
    assert idle(node, None, last_busy(found((-60, 35.0))), 4.0, NOW) is None


def test_workers_far_below_the_others_are_named() -> None:
    node = make_node(workers=tuple(Worker(at, "10.0.0.2") for at in range(4)))
    values = (90, 20, 91, 89)
    found = read_utilization(
        node,
        [series(DUTY, (-60, value), worker=f"demo-1-w-{at}") for at, value in enumerate(values)],
        None, OK, NOW,
    )  # fmt: skip
    assert stragglers(found) == {"1": pytest.approx(20 / 89.5)}
    two = read_utilization(make_node(), [series(DUTY, (-60, 90))], None, OK, NOW)
    assert stragglers(two) == {}


def test_pace_is_against_the_own_best_and_the_chips_peak() -> None:
    assert pace([], 1.0, "v2-8") is None
    found = pace([100.0, 1e9, *([200.0] * 8), *([100.0] * 5)], 1e9, "v2-8")
    assert found is not None
    assert (found.now, found.best, found.share_of_best) == (100.0, 200.0, 0.5)
    assert found.model_flops_utilization == pytest.approx(100 * 1e9 / (4 * 46e12), rel=0.05)
    unknown = pace([1.0], 1e9, "v99-8")
    assert unknown is not None
    assert unknown.model_flops_utilization is None
    no_flops = pace([1.0], None, "v2-8")
    assert no_flops is not None
    assert no_flops.model_flops_utilization is None


def test_flops_are_read_from_whatever_event_tells_them() -> None:
    entries = [
        make_entry(1, "start", payload={"event": "start", "flops_per_example": 5}),
        make_entry(2, "end", payload={"event": "finish", "metrics": {"flops_per_example": 7}}),
        make_entry(3, "bad", payload={"event": "start", "flops_per_example": "many"}),
        make_entry(4, "other", run="other", payload={"event": "start", "flops_per_example": 9}),
    ]
    assert flops_per_example(entries, "demo") == 7
    assert flops_per_example(entries[2:3], "demo") is None


def test_what_the_agent_samples_fills_in_where_monitoring_has_nothing() -> None:
    store = Store()
    chips = [{"duty_cycle_percent": 80, "hbm_used_bytes": 2**30}, {"duty_cycle_percent": 60}, "x"]
    payload = {"event": "host", "cpu_fraction": 0.25, "memory_used_bytes": 2**30, "chips": chips}
    add_logs(store, make_entry(-5, "host figures", payload=payload, zone="us-central1-b"))

    def read(measure: Measure) -> float | None:
        found = read_utilization(make_node(), store.series.of("demo-1"), None, OK, NOW)
        return found.workers[0].of(measure).value

    assert read(Measure.HOST_CPU) == 25.0
    assert read(Measure.DUTY_CYCLE) == 70.0
    assert read(Measure.HBM_USED) == 2**30
    store.apply(SeriesRead((series(CPU, (-60, 40)),), NOW))
    assert read(Measure.HOST_CPU) == 40.0
