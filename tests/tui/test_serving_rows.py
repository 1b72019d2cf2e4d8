"""Served models in the utilization pane: a row for each beside the workers, and their curves."""

from __future__ import annotations

from dataclasses import replace

from tests.tui.factories import (
    NOW,
    add_logs,
    connect,
    list_nodes,
    make_entry,
    make_node,
    make_run,
    read_runs,
    report_source,
)
from tests.tui.pane_host import PaneHost, screen_of, settle
from tests.unit.store.test_serving import EVENT
from tpudash.domain.run import RunState
from tpudash.domain.serving import ServingFigures, ServingKind
from tpudash.store.changes import ServingRead
from tpudash.store.store import Store
from tpudash.tui.widgets.row_view import RowView
from tpudash.tui.widgets.span_view import SpanView
from tpudash.tui.widgets.utilization_pane import UtilizationPane

ENDPOINT = ServingFigures(ServingKind.ENDPOINT, "api", NOW, is_ready=True, requests_per_second=7.0)


def make_store() -> Store:
    store = Store()
    connect(store)
    list_nodes(store, make_node("demo-1"))
    read_runs(store, make_run(state=RunState.SERVING, step=None))
    for name in ("nodes", "metrics"):
        report_source(store, name)
    add_logs(store, *(make_entry(at - 60, "x", payload=EVENT) for at in range(0, 60, 5)))
    return store


def serving(app: PaneHost[UtilizationPane]) -> list[str]:
    return screen_of(app.pane.query_one(".serving", SpanView))


def charts(app: PaneHost[UtilizationPane]) -> str:
    return "\n".join(screen_of(app.pane.query_one(".charts", SpanView)))


async def test_a_served_model_has_its_row_and_its_curves_beside_the_worker() -> None:
    app = PaneHost(UtilizationPane(), make_store())
    async with app.run_test(size=(80, 22)) as pilot:
        await settle(pilot)
        head, row = serving(app)
        assert head.split()[:3] == ["SERVES", "STATE", "REQ/S"]
        assert row.split()[:4] == ["demo", "v60", "alarm", "120"], "1.25 % errors are too many"
        assert "9ms" in row
        assert "requests/s 120" in charts(app)
        assert "no steps" not in charts(app)


async def test_an_endpoint_appears_and_says_why_it_has_no_figures() -> None:
    store = make_store()
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(80, 22)) as pilot:
        await settle(pilot)
        store.apply(ServingRead((ENDPOINT,)))
        await settle(pilot)
        assert [line.split()[0] for line in serving(app)] == ["SERVES", "demo", "api"]
        hostile = "[red]gone\x1b[31m\x07"
        later = replace(ENDPOINT, time=NOW.replace(second=30), is_ready=False, problem=hostile)
        store.apply(ServingRead((later,)))
        await settle(pilot)
        row = next(line for line in serving(app) if " api" in line)
        assert "no answer" in row
        assert "[red]gone" in row
        assert "\x1b" not in row


async def test_many_served_models_leave_room_for_workers_and_say_how_many_there_are() -> None:
    store = make_store()
    store.apply(ServingRead(tuple(replace(ENDPOINT, name=f"api-{n}") for n in range(9))))
    bad = replace(ENDPOINT, name="bad", is_ready=False, problem="nothing answers there")
    store.apply(ServingRead((bad,)))
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        head, *rows = serving(app)
        assert head.split("  ")[0] == " SERVES (9 more)"
        assert len(rows) == 2
        assert "bad" in "".join(rows)
        assert "demo-1" in "\n".join(screen_of(app.pane.query_one(RowView)))


async def test_without_served_models_no_room_is_taken() -> None:
    store = Store()
    list_nodes(store, make_node("demo-1"))
    app = PaneHost(UtilizationPane(), store)
    async with app.run_test(size=(80, 22)) as pilot:
        await settle(pilot)
        assert serving(app) == []
