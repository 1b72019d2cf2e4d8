"""The table repaints what changed and nothing else, and keeps its cursor whatever comes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    connect,
    list_nodes,
    make_node,
    make_run,
    read_runs,
    report_source,
)
from tpudash.store.store import Store
from tpudash.tui.widgets.node_cells import columns_for
from tpudash.tui.widgets.node_table import GAP

if TYPE_CHECKING:
    from textual.geometry import Region

    from tests.tui.conftest import Console


def record_repaints(it: Console) -> list[tuple[Region, ...]]:
    """Record the regions that the table asks to repaint; an empty tuple is the whole table."""
    asked: list[tuple[Region, ...]] = []
    original = it.table.refresh

    def refresh(*regions: Region, **options: bool) -> object:
        asked.append(regions)
        return original(*regions, **options)

    it.table.refresh = refresh  # type: ignore[assignment, method-assign]
    return asked


async def test_one_changed_cell_repaints_only_its_coordinate() -> None:
    async with console() as it:
        asked = record_repaints(it)
        others = [run for run in it.store.snapshot.runs.values() if run.name != "demo"]
        read_runs(it.store, make_run(step=451), *others)
        await it.until(lambda: "451/600" in it.screen_text)
        step, risk = (
            next(at for at, column in enumerate(it.table.columns) if column.key == key)
            for key in ("step", "risk")
        )
        regions = [region for regions in asked for region in regions]
        assert len(regions) == 2
        for region, at in zip(regions, (step, risk), strict=True):
            assert region.size == (it.table.columns[at].width, 1)
            assert region.y == 1


async def test_a_change_that_shows_nowhere_repaints_nothing() -> None:
    async with console() as it:
        asked = record_repaints(it)
        others = [run for run in it.store.snapshot.runs.values() if run.name != "demo"]
        read_runs(it.store, make_run(accuracy=0.99), *others)
        await it.pilot.pause(0.4)
        assert asked == []


async def test_the_cursor_stays_on_its_row_when_rows_come_and_go() -> None:
    async with console() as it:
        it.table.move_to("run:vision")
        list_nodes(it.store, *it.store.snapshot.nodes.values(), make_node("aaa", run=None))
        await it.until(lambda: "aaa" in it.screen_text)
        assert it.table.cursor_key == "run:vision"
        read_runs(it.store, make_run())
        await it.until(lambda: "run:vision" not in it.table.row_keys)
        assert it.table.cursor_key in it.table.row_keys


async def test_keys_move_the_cursor_and_never_beyond_the_ends() -> None:
    async with console() as it:
        last = it.table.row_keys[-1]
        await it.press("end")
        assert it.table.cursor_key == last
        await it.press("down", "j", "pagedown")
        assert it.table.cursor_key == last
        await it.press("home", "up", "k")
        assert it.table.cursor_key == it.table.row_keys[0]
        await it.press("j")
        assert it.table.cursor_key == it.table.row_keys[1]


async def test_a_click_selects_and_a_heading_sorts() -> None:
    async with console() as it:
        await it.pilot.click(it.table, offset=(5, 3))
        assert it.table.cursor_key == it.table.row_keys[2]
        x = it.table._offsets[1] + 1
        await it.pilot.click(it.table, offset=(x, 0))
        await it.until(lambda: "by state" in it.screen_text)


@given(st.integers(1, 400), st.integers(1, 400))
def test_columns_fit_whatever_the_width(width: int, total: int) -> None:
    columns = columns_for(width, total)
    assert sum(column.width + GAP for column in columns) + GAP <= max(width, GAP)
    assert len({column.key for column in columns}) == len(columns)


def test_80_columns_hold_what_matters_most() -> None:
    keys = {column.key for column in columns_for(79, 80)}
    assert {"name", "state", "age", "step", "rate", "heard", "risk", "type"} == keys


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=60))
def test_any_filter_is_harmless(text: str) -> None:
    from tests.tui.factories import make_world
    from tpudash.tui.hints import KeyHints
    from tpudash.tui.widgets.node_order import filtered
    from tpudash.tui.widgets.node_rows import build_groups

    groups = build_groups(make_world().snapshot, KeyHints({}))
    assert len(filtered(groups, text)) <= len(groups)


async def test_five_thousand_nodes_scroll_and_filter_quickly() -> None:
    store = Store()
    connect(store)
    report_source(store, "nodes")
    list_nodes(store, *(make_node(f"n{at:04d}", run=None) for at in range(5_000)))
    async with console(store) as it:
        slowest = 0.0
        for key in ("end", "pageup", "home", "pagedown"):
            began = time.process_time()
            await it.press(key)
            slowest = max(slowest, time.process_time() - began)
        began = time.process_time()
        it.nodes.filter("n42")
        slowest = max(slowest, time.process_time() - began)
        assert len(it.table.row_keys) == 100
        assert slowest < 0.25


async def test_old_ages_and_dollars_of_all_rows_move_on_together_once_a_minute() -> None:
    from tests.tui.conftest import run_console_under_test as console

    async with console(size=(160, 45)) as it:
        it.app._tick()
        before = it.table.text_of("run:demo")
        it.clock.move(30)
        it.app._tick()
        drawn = {place: cell.text for place, cell in it.table._drawn.items()}
        it.clock.move(20)
        it.app._tick()
        later = {place: cell.text for place, cell in it.table._drawn.items()}
        old = {place for place in drawn if place[1] in {"age", "accrued"}}
        assert {drawn[place] for place in old} == {later[place] for place in old}
        it.clock.move(3_600)
        it.app._tick()
        assert it.table.text_of("run:demo") != before
        assert it.table._drawn["run:demo", "accrued"].text == "$2.72"
