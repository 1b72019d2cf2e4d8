"""The utilization pane: workers, the kinds of no value, training curves, honest about emulation."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.tui.factories import (
    NOW,
    add_logs,
    connect,
    list_nodes,
    make_entry,
    make_node,
    make_run,
    node_name,
    read_runs,
    report_source,
)
from tests.tui.pane_host import PaneHost, screen_of, settle
from tpudash.domain.metric import MetricPoint, MetricSeries
from tpudash.domain.node import Worker
from tpudash.store.changes import CurvesRemembered, SeriesRead
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.store.training_curve import StepPoint, TrainingCurve
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.widgets.row_view import RowView
from tpudash.tui.widgets.span_view import SpanView
from tpudash.tui.widgets.utilization_pane import CHART_INTERVAL_S, UtilizationPane

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry


def read_series(store: Store, metric: str, node: str, *values: float, worker: str = "0") -> None:
    points = tuple(
        MetricPoint(NOW - timedelta(seconds=60 * (len(values) - 1 - at)), value)
        for at, value in enumerate(values)
    )
    name = f"tpu.googleapis.com/{metric}"
    series = MetricSeries(name, node, "us-central1-b", worker, "%", points)
    store.apply(SeriesRead((series,), NOW))


def step_entry(second: float, step: int, loss: float) -> LogEntry:
    payload = {
        "event": "step",
        "step": step,
        "target_step": 600,
        "loss": loss,
        "examples_per_second": 1_400.0,
        "step_time_s": 0.09,
    }
    return make_entry(second, f"step {step}", payload=payload)


def make_store(*, is_emulator: bool = True) -> Store:
    store = Store()
    connect(store, is_emulator=is_emulator)
    nodes = (
        make_node("demo-1"),
        make_node("idle", run=None),
        make_node("dead", "PREEMPTED", run=None),
        make_node("wide", run=None, workers=tuple(Worker(at, "10.0.0.2") for at in range(3))),
    )
    list_nodes(store, *nodes, at=NOW - timedelta(hours=1))
    list_nodes(store, *nodes)
    read_runs(store, make_run())
    report_source(store, "nodes")
    report_source(store, "metrics", interval_s=60)
    read_series(store, "accelerator/duty_cycle", "demo-1", 70, 80, 90, worker="demo-1-w-0")
    read_series(store, "cpu/utilization", "demo-1", 50, 60, 70)
    read_series(store, "cpu/utilization", "idle", 1, 0)
    for worker in range(3):
        read_series(
            store, "accelerator/duty_cycle", "wide", 90 if worker else 5, worker=f"wide-w-{worker}"
        )
    add_logs(store, *(step_entry(at - 100, at * 3, 2 * math.exp(-at / 30)) for at in range(100)))
    return store


def table(app: PaneHost[UtilizationPane]) -> str:
    return "\n".join(screen_of(app.pane.query_one(RowView)))


def charts(app: PaneHost[UtilizationPane]) -> str:
    return "\n".join(screen_of(app.pane.query(SpanView).last()))


def row_with(app: PaneHost[UtilizationPane], text: str) -> str:
    return next(line for line in table(app).split("\n") if text in line)


async def test_each_worker_has_a_row_and_each_missing_value_its_reason() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        assert "90%" in row_with(app, "demo-1")
        assert "70%" in row_with(app, "demo-1")
        assert "no work" in row_with(app, "idle")
        assert "0%" in row_with(app, "idle")
        assert "no data" in row_with(app, "wide:1")
        assert "5%!" in row_with(app, "wide:0")
        dead = row_with(app, "dead")
        assert "no " not in dead
        assert " - " in dead


async def test_what_is_emulated_says_so_and_what_is_real_does_not() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        assert app.pane.title_note() == "emulated on CPU"
        for _ in range(6):
            app.pane.perform("charts-next")
            await settle(pilot)
            if "duty cycle 90%" in charts(app):
                break
        assert "duty cycle 90%  emulated on CPU" in charts(app)
    real = PaneHost(UtilizationPane(), make_store(is_emulator=False))
    async with real.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        assert real.pane.title_note() == ""


async def test_training_curves_have_axis_units_and_last_value() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        text = charts(app)
        assert "loss 0.0738  demo step 297/600" in text
        assert "examples/s 1400" in text
        assert "step time 90ms" in text
        assert "-2m" in text
        assert " now" in text
        app.pane.perform("charts-glyphs")
        await settle(pilot)
        assert any("\u2800" < character < "\u2900" for character in charts(app))
        app.pane.perform("charts-glyphs")
        await settle(pilot)
        assert charts(app).replace("…", "").isascii()


async def test_new_steps_reach_the_charts_at_their_own_pace() -> None:
    store = make_store()
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(120, 30)) as pilot:
        app.clock.move(CHART_INTERVAL_S)
        add_logs(store, step_entry(0.5, 400, 0.01))
        await settle(pilot)
        assert "step 400/600" in charts(app)
        add_logs(store, step_entry(1, 401, 0.01))
        await settle(pilot)
        assert "step 400/600" in charts(app)
        app.tick(CHART_INTERVAL_S)
        await settle(pilot)
        assert "step 401/600" in charts(app)


async def test_values_grow_stale_by_themselves() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        app.tick(20 * 60)
        await settle(pilot)
        assert "stale 20m" in row_with(app, "demo-1")
        assert "no agent" in row_with(app, "demo-1")


async def test_the_selection_moves_the_cursor_and_the_charts() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        name = node_name("wide")
        app.pane.selection_changed(Subject(SubjectKind.NODE, name, None, name))
        await settle(pilot)
        assert "▌wide:0" in table(app)
        assert "duty cycle 5%  emulated on CPU" in charts(app)


async def test_filter_and_sizes() -> None:
    store = make_store()
    app = PaneHost(UtilizationPane(), store, plain=True)
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.filter("wide !:1")
        await settle(pilot)
        assert table(app).count("wide:") == 2
        app.pane.filter("nothing like it")
        await settle(pilot)
        assert "No worker matches the filter." in table(app)
        app.pane.filter("")
        for size in ((40, 8), (12, 3), (1, 1), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert "demo-1" in table(app)
        assert (table(app) + charts(app)).replace("…", "").isascii()
        list_nodes(store)
        await settle(pilot)
        assert "no node now" in table(app)


async def test_the_empty_pane_and_a_failing_source_say_why() -> None:
    store = Store()
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(100, 10)) as pilot:
        assert "Waiting for the first answer about nodes" in app.pane.empty_reason()
        report_source(store, "nodes")
        await settle(pilot)
        assert "Press L" in table(app)
        list_nodes(store, make_node())
        report_source(store, "metrics", SourceState.FAILING, title="permission denied")
        await settle(pilot)
        assert "Metrics can't be read" in table(app)
        assert "demo-1" in table(app)


async def test_the_cursor_reads_charts_and_one_chart_fills_the_pane() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        app.pane.perform("charts-left")
        app.pane.perform("charts-left")
        await settle(pilot)
        assert " at 12-01 11:59:5" in charts(app)
        app.pane.perform("charts-full")
        app.pane.perform("charts-closer")
        await settle(pilot)
        assert len(charts(app).split("\n")) >= 28
        assert "-1m" in charts(app)
        assert charts(app).count("demo step") == 1


async def test_what_follows_from_the_figures_is_said_above_the_charts() -> None:
    store = make_store()
    start = {"event": "start", "flops_per_example": 1e9}
    slow = {"event": "step", "step": 600, "examples_per_second": 700.0, "input_wait_fraction": 0.5}
    add_logs(
        store,
        make_entry(-200, "start", payload=start),
        *(make_entry(at / 10, "slow", payload=slow) for at in range(1, 8)),
    )
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        text = charts(app)
        assert "input-bound: waits 50%" in text
        assert "pace 50% of its best" in text
        assert "MFU" in text
        assert "of v2-8 (emulated)" in text
        name = node_name("idle")
        app.pane.selection_changed(Subject(SubjectKind.NODE, name, None, name))
        await settle(pilot)
        assert "idle 1h" in charts(app)
        assert "wasted" in charts(app)


async def test_curves_of_earlier_sessions_are_there_at_the_start() -> None:
    store = Store()
    list_nodes(store, make_node("demo-1"))
    points = tuple(
        StepPoint(NOW - timedelta(minutes=30 - at), 1, at, {"loss": 2.0 / (at + 1)})
        for at in range(20)
    )
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        assert "loss 0.1" not in charts(app)
        store.apply(CurvesRemembered((TrainingCurve("demo", points),)))
        await settle(pilot)
        app.tick(CHART_INTERVAL_S)
        await settle(pilot)
        assert "loss 0.1" in charts(app)
