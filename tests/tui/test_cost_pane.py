"""The cost pane: what is spent, what is not known, and dollars that tick cell by cell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.factories import (
    NOW,
    connect,
    list_nodes,
    make_attempt,
    make_node,
    make_run,
    make_spec,
    node_name,
    read_runs,
    report_source,
)
from tests.tui.pane_host import PaneHost, screen_of, settle
from tpudash.domain.node import Scheduling
from tpudash.domain.run import RunState
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.pane import Subject, SubjectKind
from tpudash.tui.widgets.cost_pane import CostPane
from tpudash.tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from textual.geometry import Region


def make_store() -> Store:
    store = Store()
    connect(store)
    creating = make_node("demo-2", "CREATING")
    list_nodes(store, creating, make_node("demo-1"), at=NOW - timedelta(minutes=40))
    list_nodes(
        store, make_node("demo-2"), make_node("demo-1", "PREEMPTED"), at=NOW - timedelta(minutes=30)
    )
    list_nodes(
        store,
        make_node("demo-2"),
        make_node("demo-1", "PREEMPTED"),
        make_node(
            "stray", run=None, accelerator_type="v9-mystery", scheduling=Scheduling.ON_DEMAND
        ),
    )
    spec = replace(make_spec("demo"), attempt=2, max_cost_usd=0.5)
    read_runs(
        store,
        make_run(
            "demo",
            spec=spec,
            attempts=(
                make_attempt(1, state="PREEMPTED", ended=NOW - timedelta(minutes=31)),
                make_attempt(2),
            ),
        ),
    )
    report_source(store, "nodes")
    return store


def table(app: PaneHost[CostPane]) -> str:
    return "\n".join(screen_of(app.pane.query_one(RowView)))


def row_with(app: PaneHost[CostPane], text: str) -> str:
    return next(line for line in table(app).split("\n") if text in line)


async def test_runs_and_nodes_say_what_they_cost_and_what_is_not_known() -> None:
    app = PaneHost(CostPane(), make_store())
    async with app.run_test(size=(160, 20)) as pilot:
        await settle(pilot)
        assert "$1.35" in row_with(app, "  demo-2")
        assert "$0.338~" in row_with(app, "  demo-2")
        assert "2026-" in row_with(app, "  demo-2")
        preempted = row_with(app, "  demo-1")
        assert "◆ PREEMPTED" in preempted
        assert "$0 " in preempted
        stray = row_with(app, "  stray")
        assert "unknown" in stray
        assert " - " in stray
        assert "≥$1.35/h now, 2 billed" in table(app)
        assert "emulated, so nothing is charged" in table(app)
        assert app.pane.title_note() == "≥$1.35/h"


async def test_the_selected_row_tells_source_and_day_of_its_price() -> None:
    app = PaneHost(CostPane(), make_store())
    async with app.run_test(size=(110, 20)) as pilot:
        name = node_name("demo-2")
        app.pane.selection_changed(Subject(SubjectKind.NODE, name, "demo", name))
        await settle(pilot)
        about = app.pane.copy_text()
        assert "4 chips x $0.3375 per chip-hour, spot in us-central1" in about
        assert "An example: spot prices change" in about
        assert "of 2026-" in about
        app.pane.query_one(RowView).focus()
        await pilot.press("home")
        assert "capped it at $0.500" in app.pane.copy_text()


async def test_dollars_tick_and_only_changed_cells_are_repainted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = PaneHost(CostPane(), make_store())
    async with app.run_test(size=(110, 20)) as pilot:
        await settle(pilot)
        view = app.pane.query_one(RowView)
        before = row_with(app, "  demo-2")
        painted: list[Region] = []
        original = view.refresh

        def refresh(*regions: Region, **more: bool) -> object:
            painted.extend(regions or [view.size.region])
            return original(*regions, **more)

        monkeypatch.setattr(view, "refresh", refresh)
        app.tick(30)
        await settle(pilot)
        assert row_with(app, "  demo-2") != before
        assert painted
        assert all(region.height == 1 and region.width < 40 for region in painted)
        painted.clear()
        app.tick(0)
        await settle(pilot)
        assert painted == []


async def test_nothing_ticks_while_nothing_is_billed() -> None:
    store = Store()
    list_nodes(store, make_node("demo-1", "PREEMPTED"))
    app = PaneHost(CostPane(), store)
    async with app.run_test(size=(80, 12)) as pilot:
        await settle(pilot)
        before = table(app)
        app.tick(600)
        assert table(app) == before
        assert app.pane.title_note() == ""


async def test_a_vanished_node_keeps_what_it_has_cost() -> None:
    store = make_store()
    app = PaneHost(CostPane(), store)
    async with app.run_test(size=(110, 20)) as pilot:
        list_nodes(store, make_node("demo-1", "PREEMPTED"))
        await settle(pilot)
        assert "† GONE" in row_with(app, "  demo-2")
        assert "$0.675" in row_with(app, "  demo-2")


async def test_filter_plain_glyphs_and_small_sizes() -> None:
    app = PaneHost(CostPane(), make_store(), plain=True)
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.filter("stray")
        await settle(pilot)
        assert "demo" not in table(app)
        assert table(app).replace("…", "").isascii()
        app.pane.filter("nothing like it")
        await settle(pilot)
        assert "No row matches the filter." in table(app)
        app.pane.filter("")
        for size in ((30, 8), (12, 3), (1, 1), (200, 60)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert "demo-2" in table(app)


@pytest.mark.parametrize("is_watch", [False, True])
async def test_the_empty_pane_says_why(is_watch: bool) -> None:
    store = Store()
    app = PaneHost(CostPane(), store, is_watch=is_watch)
    async with app.run_test(size=(80, 10)) as pilot:
        assert "Waiting for the first answer about nodes" in app.pane.empty_reason()
        report_source(
            store, "nodes", SourceState.FAILING, title="quota exceeded", last_success=None
        )
        await settle(pilot)
        assert "no answer yet): quota exceeded" in table(app)
        report_source(store, "nodes")
        await settle(pilot)
        assert ("Press L" in table(app)) is not is_watch
        assert "Nothing runs in this project yet" in table(app)


async def test_a_run_whose_record_says_nothing_is_still_there() -> None:
    store = Store()
    read_runs(store, make_run("odd", RunState.FAILED, spec=None, attempts=(), nodes=()))
    app = PaneHost(CostPane(), store)
    async with app.run_test(size=(80, 10)) as pilot:
        await settle(pilot)
        assert "✗ FAILED" in row_with(app, "odd")


def month_store() -> Store:
    """A run of alice's that lost steps to a preemption, and one of bob's that left its node idle.

    demo: an hour of 400 steps of which 100 were lost, and half an hour since, at $1.35 an hour.
    over: it finished an hour ago, and its node goes on.
    """
    store = Store()
    connect(store)
    hours = [NOW - timedelta(hours=one) for one in (0, 1, 2)]
    first = make_attempt(
        1, state="PREEMPTED", started=hours[2], ended=hours[1], restored_step=0, step=400
    )
    second = make_attempt(
        2,
        started=NOW - timedelta(minutes=30),
        updated=NOW,
        restored_step=300,
        steps_lost=100,
        step=500,
    )
    done = make_attempt(1, run="over", state="FINISHED", started=hours[2], ended=hours[1])
    node = make_node("demo-2", create_time=NOW - timedelta(minutes=31))
    left = make_node("over-1", run="over", create_time=hours[2])
    left = replace(left, labels={**left.labels, "tpudash-owner": "bob"})
    list_nodes(store, node, left)
    spec = replace(make_spec("demo"), attempt=2, target_step=1000)
    run = make_run("demo", spec=spec, attempts=(first, second), step=500, target_step=1000)
    over = make_run("over", RunState.FINISHED, owner="bob", attempts=(done,))
    read_runs(store, run, over)
    report_source(store, "nodes")
    return store


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_run_says_where_its_dollars_went_and_will_go(size: tuple[int, int]) -> None:
    """Lost: 100 of the 400 steps of an hour. Rest: 500 steps at 200 in half an hour, $1.6875."""
    app = PaneHost(CostPane(), month_store())
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.pane.selection_changed(Subject(SubjectKind.RUN, "demo", "demo", None))
        await settle(pilot)
        about = app.pane.copy_text()
        for fact in (
            "Today $2.0",
            "this month $2.0",
            "Wasted $0.338: steps lost $0.338",
            "at its target, in 1h15m",
            "1,000 steps cost $4.0",
            "with 1 preemption; on demand $",
        ):
            assert fact in about, fact
        assert "$0.338" in row_with(app, "demo  ")
        assert "today" in table(app)
        assert "wasted $1.69 (idle $1.35, steps lost $0.338)" in table(app)


async def test_the_waste_of_an_idle_node_grows_though_nothing_changes() -> None:
    app = PaneHost(CostPane(), month_store())
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        assert "idle $1.35" in table(app)
        app.tick(3600)
        await settle(pilot)
        assert "idle $2.70" in table(app)


@pytest.mark.parametrize("is_watch", [False, True])
async def test_owners_stand_side_by_side_and_a_wall_screen_names_none(is_watch: bool) -> None:
    app = PaneHost(CostPane(), month_store(), is_watch=is_watch)
    async with app.run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        app.pane.perform("cost-view")
        await settle(pilot)
        assert "by owner" in app.pane.title_note()
        names = ("owner 1", "owner 2") if is_watch else ("alice", "bob")
        for name in names:
            assert "$1.35" in row_with(app, name)
        assert ("alice" in table(app)) is not is_watch
        assert ("bob" in app.pane.copy_text()) is False or not is_watch
        assert "  over" in table(app)
        app.pane.perform("cost-view")
        await settle(pilot)
        assert "over-1" in table(app)


async def test_days_end_at_midnight_utc_while_the_pane_is_open() -> None:
    app = PaneHost(CostPane(), month_store())
    async with app.run_test(size=(160, 24)) as pilot:
        await settle(pilot)
        to_midnight = (NOW + timedelta(days=1)).replace(hour=0, minute=0, second=0) - NOW
        app.tick(to_midnight.total_seconds() + 7200)
        await settle(pilot)
        assert "today $5.40" in table(app)
