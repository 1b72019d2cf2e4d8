"""Cells of utilization: values, and the five reasons for none, each by its own evidence."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.tui.factories import NOW, ZONE, make_attempt, make_entry, make_node, make_run
from tpudash.domain.metric import MetricPoint, MetricSeries, NoValue
from tpudash.domain.node import Worker
from tpudash.domain.run import Run, RunState
from tpudash.store.snapshot import METRICS as METRICS_SOURCE
from tpudash.store.snapshot import NodeTimes, SourceState, SourceStatus
from tpudash.store.training_curve import training_curve
from tpudash.store.utilization import (
    METRICS,
    Cell,
    Measure,
    NodeUtilization,
    read_utilization,
)

HOST = [measure for measure, metric in METRICS.items() if not metric.of_accelerator]
ON_CHIPS = [measure for measure, metric in METRICS.items() if metric.of_accelerator]
ANSWERING = SourceStatus(METRICS_SOURCE, SourceState.OK, NOW, NOW, interval_s=60)


def series(
    measure: Measure,
    *values: float,
    ends: datetime = NOW - timedelta(seconds=30),
    period_s: float = 60,
    **more: Any,
) -> MetricSeries:
    """One time series, its newest point at `ends`."""
    count = len(values)
    points = tuple(
        MetricPoint(ends - timedelta(seconds=period_s * (count - 1 - at)), value)
        for at, value in enumerate(values)
    )
    fields: dict[str, Any] = {
        "metric": METRICS[measure].metric_type,
        "node_id": "demo-1",
        "zone": ZONE,
        "worker_id": "0",
        "unit": "%" if METRICS[measure].unit == "%" else "By",
        **more,
    }
    return MetricSeries(points=points, **fields)


def read(*own: MetricSeries, run: Run | None = None, **more: Any) -> NodeUtilization:
    node = more.pop("node", make_node())
    source = more.pop("source", ANSWERING)
    return read_utilization(node, own, run, source, NOW, **more)


def test_a_fresh_point_is_a_value_with_its_age() -> None:
    cell = read(series(Measure.DUTY_CYCLE, 10, 20), run=make_run()).of(Measure.DUTY_CYCLE)
    assert (cell.value, cell.reason, cell.unit) == (20, None, "%")
    assert cell.age(NOW) == timedelta(seconds=30)
    assert cell.age(NOW - timedelta(hours=1)) == timedelta(0)
    assert [point.value for point in cell.history] == [10, 20]


@pytest.mark.parametrize("measure", Measure)
def test_a_measured_zero_is_a_value(measure: Measure) -> None:
    cell = read(series(measure, 0, 0), run=None).of(measure)
    assert cell.value == 0
    assert cell.reason is None


@pytest.mark.parametrize("measure", ON_CHIPS)
@pytest.mark.parametrize(
    "run", [None, make_run(state=RunState.FINISHED), make_run(state=RunState.FAILED)]
)
def test_ready_without_a_training_run_is_no_workload(measure: Measure, run: Run | None) -> None:
    found = read(series(Measure.HOST_CPU, 3), run=run)
    assert found.of(measure).reason is NoValue.NO_WORKLOAD
    assert found.of(Measure.HOST_CPU).value == 3


def test_values_that_ended_with_the_workload_are_no_workload() -> None:
    old = series(Measure.DUTY_CYCLE, 80, ends=NOW - timedelta(hours=1))
    cell = read(old, run=make_run(state=RunState.FINISHED)).of(Measure.DUTY_CYCLE)
    assert cell.reason is NoValue.NO_WORKLOAD
    assert cell.as_of == NOW - timedelta(hours=1)


@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize(
    ("age_s", "reason"), [(239, NoValue.NOT_YET), (241, NoValue.NO_DATA), (9_999, NoValue.NO_DATA)]
)
def test_a_young_node_has_no_values_yet(measure: Measure, age_s: int, reason: NoValue) -> None:
    born = NOW - timedelta(seconds=age_s)
    run = make_run(attempts=(make_attempt(started=NOW - timedelta(hours=5)),))
    node = make_node(create_time=born)
    assert read(run=run, node=node).of(measure).reason is reason
    times = NodeTimes(NOW - timedelta(days=1), born, born)
    assert read(run=run, times=times).of(measure).reason is reason


def test_a_young_attempt_has_no_values_yet() -> None:
    run = make_run(attempts=(make_attempt(started=NOW - timedelta(seconds=20)),))
    assert read(run=run).of(Measure.DUTY_CYCLE).reason is NoValue.NOT_YET


@pytest.mark.parametrize("state", ["CREATING", "STARTING", "REPAIRING"])
def test_a_node_on_its_way_has_no_values_yet(state: str) -> None:
    found = read(node=make_node("demo-1", state))
    assert {found.of(measure).reason for measure in Measure} == {NoValue.NOT_YET}


def test_a_source_that_never_answered_has_no_values_yet() -> None:
    found = read(run=make_run(), source=SourceStatus(METRICS_SOURCE))
    assert {found.of(measure).reason for measure in Measure} == {NoValue.NOT_YET}


@pytest.mark.parametrize(
    "run",
    [make_run(last_heard=NOW - timedelta(seconds=121)), make_run(state=RunState.STALLED)],
)
@pytest.mark.parametrize("measure", Measure)
def test_a_run_said_to_train_with_a_silent_agent_is_agent_failed(
    run: Run, measure: Measure
) -> None:
    assert read(run=run).of(measure).reason is NoValue.AGENT_FAILED


def test_old_chip_values_of_a_silent_agent_are_agent_failed_and_old_host_values_stale() -> None:
    run = make_run(state=RunState.STALLED)
    past = NOW - timedelta(minutes=30)
    found = read(
        series(Measure.DUTY_CYCLE, 50, ends=past), series(Measure.HOST_CPU, 50, ends=past), run=run
    )
    assert found.of(Measure.DUTY_CYCLE).reason is NoValue.AGENT_FAILED
    assert found.of(Measure.HOST_CPU).reason is NoValue.STALE


@pytest.mark.parametrize(
    ("age_s", "period_s", "is_stale"),
    [(360, 60, False), (361, 60, True), (20, 5, False), (21, 5, True)],
)
@pytest.mark.parametrize("measure", Measure)
def test_points_older_than_three_periods_and_the_lag_are_stale(
    measure: Measure, age_s: int, period_s: int, is_stale: bool
) -> None:
    ends = NOW - timedelta(seconds=age_s)
    cell = read(series(measure, 1, 2, 3, ends=ends, period_s=period_s), run=make_run()).of(measure)
    assert (cell.reason is NoValue.STALE) is is_stale
    assert (cell.value is None) is is_stale
    assert cell.as_of == ends


@pytest.mark.parametrize("measure", [one for one in Measure if one is not Measure.HOST_CPU])
def test_a_metric_without_series_while_others_have_some_is_no_data(measure: Measure) -> None:
    found = read(series(Measure.HOST_CPU, 3), run=make_run())
    assert found.of(measure).reason is NoValue.NO_DATA


def test_a_dead_node_has_no_data() -> None:
    found = read(node=make_node("demo-1", "PREEMPTED"), run=make_run(state=RunState.PREEMPTED))
    assert found.of(Measure.DUTY_CYCLE).reason is NoValue.NO_DATA


def test_a_newer_attempt_elsewhere_is_no_workload_here() -> None:
    run = make_run(attempts=(make_attempt(1), make_attempt(2)))
    assert read(run=run).of(Measure.DUTY_CYCLE).reason is NoValue.NO_WORKLOAD
    newer = read(series(Measure.HOST_CPU, 3, node_id="demo-2"), run=run, node=make_node("demo-2"))
    assert newer.of(Measure.DUTY_CYCLE).reason is NoValue.NO_DATA


def test_series_of_other_nodes_zones_and_of_none_are_left_out() -> None:
    strangers = [
        series(Measure.DUTY_CYCLE, 1, node_id="demo-2"),
        series(Measure.DUTY_CYCLE, 2, zone="europe-west4-a"),
        series(Measure.DUTY_CYCLE, 3, node_id=None),
    ]
    assert read(*strangers, run=make_run()).of(Measure.DUTY_CYCLE).value is None
    mine = series(Measure.DUTY_CYCLE, 4, zone=None)
    assert read(*strangers, mine, run=make_run()).of(Measure.DUTY_CYCLE).value == 4


def test_chips_are_averaged_and_their_memory_added() -> None:
    found = read(
        *(
            series(measure, value, labels={"accelerator_id": str(chip)})
            for measure, values in {
                Measure.DUTY_CYCLE: (40, 60),
                Measure.HBM_USED: (3e9, 5e9),
            }.items()
            for chip, value in enumerate(values)
        ),
        run=make_run(),
    )
    assert found.of(Measure.DUTY_CYCLE).value == 50
    assert found.of(Measure.HBM_USED).value == 8e9


def test_a_moment_without_all_chips_adds_up_to_nothing() -> None:
    found = read(
        series(Measure.HBM_USED, 1e9, 2e9, labels={"accelerator_id": "0"}),
        series(
            Measure.HBM_USED,
            3e9,
            ends=NOW - timedelta(seconds=90),
            labels={"accelerator_id": "1"},
        ),
        run=make_run(),
    )
    cell = found.of(Measure.HBM_USED)
    assert cell.value == 4e9
    assert len(cell.history) == 1


def test_byte_counts_become_rates() -> None:
    counted = read(series(Measure.SENT, 600, 1200)).of(Measure.SENT)
    assert (counted.value, counted.unit) == (20, "By/s")
    short = read(series(Measure.SENT, 600, 1200, ends=NOW, period_s=5)).of(Measure.SENT)
    assert short.value == 240
    rate = read(series(Measure.SENT, 600, unit="By/s")).of(Measure.SENT)
    assert rate.value == 600


def test_fractions_become_percent() -> None:
    assert read(series(Measure.HOST_CPU, 0.25, unit="10^2.%")).of(Measure.HOST_CPU).value == 25


def test_workers_are_in_order_and_joined_by_their_number() -> None:
    node = make_node(workers=tuple(Worker(index, f"10.0.0.{index}") for index in range(12)))
    found = read(
        series(Measure.HOST_CPU, 30, worker_id="t1v-n-w-10"),
        series(Measure.HOST_CPU, 10, worker_id="2"),
        node=node,
    )
    assert [worker.worker_id for worker in found.workers] == [str(index) for index in range(12)]
    assert found.workers[10].of(Measure.HOST_CPU).value == 30
    assert found.of(Measure.HOST_CPU).reason is NoValue.NO_DATA


def test_a_node_is_the_mean_or_the_sum_of_its_workers() -> None:
    node = make_node(workers=(Worker(0, "10.0.0.1"), Worker(1, "10.0.0.2")))
    found = read(
        *(
            series(measure, value * (worker + 1), worker_id=str(worker))
            for measure, value in {Measure.HOST_CPU: 20, Measure.HOST_MEMORY: 1e9}.items()
            for worker in range(2)
        ),
        node=node,
    )
    assert found.of(Measure.HOST_CPU).value == 30
    assert found.of(Measure.HOST_MEMORY).value == 3e9
    assert [point.value for point in found.of(Measure.HOST_CPU).history] == [30]


def test_a_failing_source_is_named() -> None:
    failing = SourceStatus(METRICS_SOURCE, SourceState.FAILING, NOW, NOW, "Not allowed to read")
    assert read(source=failing).note == "Not allowed to read"
    assert read().note == ""


def steps(*seconds: float) -> list[Any]:
    return [
        make_entry(
            at,
            "",
            attempt=1,
            payload={"event": "step", "step": 100 + at, "loss": 0.5, "input_wait_fraction": 0.1},
        )
        for at in seconds
    ]


def training(run: Run | None, *seconds: float) -> dict[str, Cell]:
    curve = training_curve(steps(*seconds), "demo") if seconds else None
    return dict(read(run=run, curve=curve).training)


def test_training_figures_come_from_the_curve_or_the_record() -> None:
    from_curve = training(make_run(), -20, -10)
    assert from_curve["loss"].value == 0.5
    assert from_curve["input_wait_fraction"].value == 0.1
    assert len(from_curve["loss"].history) == 2
    assert from_curve["step_time_s"].reason is NoValue.NO_DATA
    from_record = training(make_run())
    assert from_record["loss"].value == 0.21
    assert from_record["loss"].age(NOW) == timedelta(seconds=4)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (None, NoValue.NO_WORKLOAD),
        (make_run(state=RunState.LAUNCHING, attempts=(), loss=None), NoValue.NOT_YET),
        (
            make_run(attempts=(make_attempt(started=NOW - timedelta(seconds=9)),), loss=None),
            NoValue.NOT_YET,
        ),
        (make_run(state=RunState.STALLED, loss=None), NoValue.AGENT_FAILED),
        (make_run(state=RunState.FAILED, loss=None), NoValue.NO_WORKLOAD),
    ],
)
def test_a_missing_training_figure_has_its_reason(run: Run | None, reason: NoValue) -> None:
    assert training(run)["loss"].reason is reason


def test_old_steps_of_a_training_run_are_stale_and_of_a_finished_one_its_last_word() -> None:
    assert training(make_run(), -300)["loss"].reason is NoValue.STALE
    silent = make_run(last_heard=NOW - timedelta(seconds=300))
    assert training(silent, -300)["loss"].reason is NoValue.AGENT_FAILED
    finished = training(make_run(state=RunState.FINISHED), -300)["loss"]
    assert (finished.value, finished.age(NOW)) == (0.5, timedelta(seconds=300))
