"""The console as a whole: what it shows, how its panes and keys behave, and what it survives."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    NOW,
    ZONE,
    list_nodes,
    make_node,
    make_progress,
    make_run,
    read_runs,
    report_progress,
    report_source,
)
from tpudash.config.themes import find_theme
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.operation import OperationState
from tpudash.errors import ConfigurationError
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.action import Offer
from tpudash.tui.actions import ACTIONS
from tpudash.tui.pane import PaneId
from tpudash.tui.screens.confirm import ConfirmDialog
from tpudash.tui.screens.details import DetailsScreen
from tpudash.tui.screens.help import HelpScreen
from tpudash.tui.screens.operations import OperationsScreen
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.app import TpudashApp
    from tpudash.tui.pane import Pane
    from tpudash.tui.screens.main import MainScreen


def record_applied(target: Pane | MainScreen) -> list[ChangeSet]:
    """Record every change set that a pane or the screen is given."""
    applied: list[ChangeSet] = []
    original = target.apply

    def apply(changes: ChangeSet) -> None:
        applied.append(changes)
        original(changes)

    target.apply = apply  # type: ignore[method-assign]
    return applied


async def test_80x24_shows_the_key_facts() -> None:
    async with console(size=(80, 24)) as it:
        shown = it.screen_text
        for fact in (
            "EMULATOR",
            "demo",
            ZONE,
            "alice@example.com",
            "data 3s",
            "$5.85/h",
            "TRAINING",
            "450/600",
            "READY",
            "PREEMPTED",
            "stray",
            "GONE",
            "RISK",
            "2 Utilization",
            "3 Logs",
            "L launch",
            "? help",
            "q quit",
        ):
            assert fact in shown, fact
        assert all(len(line) == 80 for line in shown.split("\n"))


async def test_200x60_shows_all_five_panes_and_all_columns() -> None:
    async with console(size=(200, 60)) as it:
        shown = it.screen_text
        for pane in PaneId:
            assert f"{pane.number} {it.app.main.panes[pane].title}" in shown
        for column in (
            "HEALTH",
            "CHIPS",
            "HOSTS",
            "SCHED",
            "ZONE",
            "EX/S",
            "LOSS",
            "HEARD",
            "COST",
        ):
            assert column in shown, column
        assert "UNHEALTHY_TENSORFLOW" in shown
        assert "WAITING_FOR_RESOURCES" in shown
        assert "v5litepod-16" in shown


async def test_without_a_column_for_health_bad_health_still_shows() -> None:
    async with console(size=(80, 24)) as it:
        assert "READY UNHEA" in it.screen_text


async def test_every_action_has_a_handler() -> None:
    async with console() as it:
        handled = set(it.app._handlers)
        wanted = {
            action.id
            for action in ACTIONS
            if action.scope is None and action.needs is not Offer.REPLAY
        }
        assert handled == wanted


async def test_number_keys_bring_up_and_focus_panes() -> None:
    async with console(size=(80, 24)) as it:
        for key, pane in (("3", PaneId.LOGS), ("5", PaneId.CHECKLIST), ("4", PaneId.COST)):
            await it.press(key)
            assert it.app.main.current.pane_id is pane
            assert it.app.main.visible_panes == (PaneId.NODES, pane)
        await it.press("1")
        assert it.app.main.visible_panes == (PaneId.NODES, PaneId.COST)


async def test_tab_walks_through_the_panes() -> None:
    async with console(size=(200, 60)) as it:
        seen = []
        for _ in range(5):
            await it.press("tab")
            seen.append(it.app.main.current.pane_id)
        assert seen == [*tuple(PaneId)[1:], PaneId.NODES]


async def test_zoom_gives_a_pane_the_whole_screen_and_gives_it_back() -> None:
    async with console(size=(200, 60)) as it:
        await it.press("z")
        assert it.app.main.visible_panes == (PaneId.NODES,)
        await it.press("z")
        assert it.app.main.visible_panes == tuple(PaneId)


async def test_changes_reach_the_table_as_one_coalesced_update() -> None:
    async with console() as it:
        applied = record_applied(it.app.main)
        others = [run for run in it.store.snapshot.runs.values() if run.name != "demo"]
        for step in range(451, 461):
            read_runs(it.store, make_run(step=step), *others)
        await it.until(lambda: applied)
        assert len(applied) == 1
        assert "460/600" in it.screen_text


async def test_a_hidden_pane_is_told_later_what_it_missed() -> None:
    async with console(size=(80, 24)) as it:
        logs = it.app.main.panes[PaneId.LOGS]
        told = record_applied(logs)
        list_nodes(it.store, make_node("late-1", "CREATING", run=None))
        await it.until(lambda: "late-1" in it.screen_text)
        assert not told
        await it.press("3")
        assert [bool(changes.nodes) for changes in told] == [True]


async def test_pause_holds_the_display_still_and_counts_what_it_holds_back() -> None:
    async with console() as it:
        await it.press("p")
        list_nodes(it.store, make_node("late-1", "CREATING", run=None))
        await it.until(lambda: "PAUSED +1" in it.screen_text)
        assert "late-1" not in it.screen_text
        await it.press("p")
        assert "late-1" in it.screen_text
        assert "PAUSED" not in it.screen_text


async def test_the_age_of_the_data_moves_on_and_old_data_says_so() -> None:
    async with console() as it:
        it.clock.move(200)
        await it.until(lambda: "OLD DATA 3m23s" in it.screen_text)


async def test_a_clock_that_jumps_back_does_no_harm() -> None:
    async with console() as it:
        it.clock.time = NOW - timedelta(days=400)
        await it.until(lambda: "data 0s" in it.screen_text)


@pytest.mark.parametrize("is_watch", [False, True])
async def test_an_empty_screen_says_why_and_what_to_press(is_watch: bool) -> None:
    store = Store()
    report_source(store, "nodes")
    async with console(store, is_watch=is_watch) as it:
        assert "There are no nodes" in it.screen_text
        assert ("Press L" in it.screen_text) is not is_watch


async def test_a_failing_source_is_named_where_the_nodes_would_be() -> None:
    store = Store()
    async with console(store) as it:
        assert "Asking for nodes" in it.screen_text
        report_source(
            store,
            "nodes",
            SourceState.FAILING,
            last_success=None,
            title="The Cloud TPU API does not answer",
            hint="Check the network.",
        )
        await it.until(lambda: "does not answer. Check the network." in it.screen_text)
        assert "no data" in it.screen_text


async def test_a_silent_zone_keeps_its_nodes_and_says_so() -> None:
    async with console() as it:
        list_nodes(it.store, silent=[ZONE])
        await it.until(lambda: "(1 silent)" in it.screen_text)
        assert "demo-1" in it.screen_text


async def test_help_lists_every_action_with_its_key() -> None:
    async with console(size=(120, 60)) as it:
        await it.press("?")
        assert isinstance(it.app.screen, HelpScreen)
        text = it.app.screen.plain_text
        for action in ACTIONS:
            if action.scope in {None, PaneId.NODES} and action.exists(it.app.situation):
                assert action.help.split(",")[0][:30] in text, action.id
        await it.press("escape")
        assert not isinstance(it.app.screen_stack[-1], HelpScreen)


async def test_details_show_every_field_and_mask_secrets() -> None:
    async with console(size=(120, 40)) as it:
        await it.press("enter")
        assert isinstance(it.app.screen, DetailsScreen)
        text = it.app.screen.plain_text
        assert "tpu-vm-tf-2.18.0-pjrt" in text
        assert "Timeline" in text
        assert "step 29 loss" in text
        assert "203.0.113.7" in text
        assert "abc123" not in text


async def test_details_of_every_kind_of_row_open_and_close() -> None:
    async with console(size=(120, 40)) as it:
        for key in it.table.row_keys:
            it.table.move_to(key)
            await it.press("enter")
            assert isinstance(it.app.screen, DetailsScreen), key
            assert it.app.screen.subject.name in key
            assert it.app.screen.plain_text.strip()
            await it.press("escape")


async def test_watch_mode_masks_accounts_and_addresses() -> None:
    async with console(size=(120, 40), is_watch=True) as it:
        assert "WATCH" in it.screen_text
        assert "alice@example.com" not in it.screen_text
        it.table.move_to(f"node:{make_node().name}")
        await it.press("enter")
        assert isinstance(it.app.screen, DetailsScreen)
        assert "203.0.113.7" not in it.app.screen.plain_text
        assert "10.0.0.2" not in it.app.screen.plain_text


async def test_filter_keeps_heads_of_matching_children_and_escape_ends_it() -> None:
    async with console() as it:
        await it.press("/", *"stray")
        assert [key.rsplit("/", 1)[-1] for key in it.table.row_keys] == ["stray"]
        await it.press("enter")
        assert "/stray" in it.screen_text
        await it.press("/", "escape")
        assert len(it.table.row_keys) > 5


async def test_typing_a_filter_triggers_no_action() -> None:
    async with console() as it:
        await it.press("/", *"LRDq?")
        assert it.app.main.query_one("#filter-input", Input).value == "LRDq?"
        assert it.app.screen is it.app.main
        assert not it.operations.calls


async def test_sort_walks_through_the_columns_and_says_so() -> None:
    async with console() as it:
        await it.press("s")
        assert "by state" in it.screen_text
        assert it.table.row_keys[0] == "run:vision"


async def test_operations_are_live_below_the_panes_and_failures_stay() -> None:
    async with console() as it:
        report_progress(it.store, make_progress())
        await it.until(lambda: "waiting until the node is READY" in it.screen_text)
        failure = Failure(
            ErrorClass.STOCKOUT,
            "There is no more capacity in the zone",
            "Try another zone.",
            RetryPolicy.NEXT_ZONE,
            eid="0x1",
        )
        failed = make_progress(state=OperationState.FAILED, message="no capacity", failure=failure)
        report_progress(it.store, failed)
        await it.until(lambda: "FAILED" in it.screen_text)
        it.clock.move(3_600)
        await it.press("o")
        assert isinstance(it.app.screen, OperationsScreen)
        for fact in ("STOCKOUT", "no more capacity", "Try another zone.", "0x1"):
            assert fact in it.app.screen.plain_text
        await it.press("escape")
        assert not it.app.main.strip.lines


async def test_quitting_with_billed_nodes_asks_once_with_the_rate() -> None:
    async with console() as it:
        await it.press("q")
        assert isinstance(it.app.screen, ConfirmDialog)
        assert "2 nodes keep running and billed at $5.85/h" in it.screen_text
        await it.press("escape")
        assert it.app.is_running
        await it.press("q", "q")
        assert it.app._exit


async def test_quitting_with_nothing_billed_asks_nothing() -> None:
    async with console(Store()) as it:
        await it.press("q")
        assert it.app._exit


async def test_a_stuck_background_does_not_hold_up_the_end() -> None:
    async def stuck() -> None:
        while True:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                if release.is_set():
                    raise

    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with console(Store(), background=stuck) as it:
        await it.until(lambda: it.app._background.is_running)
        began = loop.time()
        await it.press("q")
    assert loop.time() - began < 2
    release.set()
    task = it.app._background._task
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_background_starts_after_the_first_frame() -> None:
    painted: list[bool] = []

    async def background() -> None:
        painted.append(bool(apps[0].screen._compositor.visible_widgets))
        await asyncio.Event().wait()

    apps: list[TpudashApp] = []
    async with console(background=background, created=apps.append) as it:
        await it.until(lambda: painted)
        assert painted == [True]


async def test_a_background_that_fails_is_said_and_the_screen_lives_on() -> None:
    async def background() -> None:
        raise RuntimeError("[red]no[/red] credentials")

    async with console(background=background) as it:
        await it.until(lambda: "NO MORE DATA" in it.screen_text)
        assert any("[red]no[/red] credentials" in notice for notice in it.notices)
        await it.press("3")
        assert it.app.main.current.pane_id is PaneId.LOGS


@pytest.mark.parametrize("size", [(60, 15), (30, 8), (10, 4), (1, 1)])
async def test_any_size_does_no_harm(size: tuple[int, int]) -> None:
    async with console() as it:
        for screen_keys in ((), ("L",), ("D",), ("?",), ("enter",), (":",)):
            await it.press(*screen_keys)
            await it.pilot.resize_terminal(*size)
            await it.pilot.pause()
            await it.pilot.resize_terminal(80, 24)
            await it.press("escape")
        assert "TRAINING" in it.screen_text


async def test_hostile_labels_reach_the_screen_as_data() -> None:
    async with console(size=(200, 60)) as it:
        evil = make_node(
            "evil-1",
            "[red]\x1b[2JSTATE\u202e",
            run=None,
            labels={"x": "[link=http://x]y[/link]"},
            accelerator_type="\x1b]0;title\x07日本語",
        )
        list_nodes(it.store, evil)
        await it.until(lambda: "evil-1" in it.screen_text)
        assert "[red]STATE" in it.screen_text
        assert "\x1b" not in it.screen_text
        assert "\u202e" not in it.screen_text
        assert all(line.isprintable() for line in it.screen_text.split("\n"))


async def test_copying_says_where_it_went(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "copied.txt"
    settings = ConsoleSettings(copy_file=target)
    async with console(size=(160, 40), settings=settings) as it:
        await it.press("y")
        await it.until(lambda: it.notices)
        assert "TRAINING" in target.read_text()
        assert it.app.clipboard == target.read_text().rstrip("\n")
        assert str(target) in it.notices[-1]
        assert target.stat().st_mode & 0o077 == 0


async def test_a_bad_keymap_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(ConfigurationError):
        async with console(settings=ConsoleSettings(keymap={"zoom": "q"})):
            pass


async def test_the_users_keys_work_and_are_shown() -> None:
    async with console(settings=ConsoleSettings(keymap={"help": "f1"})) as it:
        assert "f1 help" in it.screen_text
        await it.press("f1")
        assert isinstance(it.app.screen, HelpScreen)


async def test_ascii_mode_draws_nothing_else() -> None:
    async with console(settings=ConsoleSettings(ascii=True)) as it:
        rows = it.screen_text.split("\n")
        nodes = rows[:10]
        assert all(line.isascii() for line in nodes), nodes


async def test_a_run_that_is_resumed_moves_on_in_place() -> None:
    async with console() as it:
        it.table.move_to("run:vision")
        runs = {**it.store.snapshot.runs}
        runs["vision"] = replace(runs["vision"], step=777)
        read_runs(it.store, *runs.values())
        await it.until(lambda: "777/600" in it.screen_text)
        assert it.table.cursor_key == "run:vision"


async def test_rotation_zooms_one_pane_after_the_other() -> None:
    panes = (PaneId.NODES, PaneId.COST)
    async with console(is_watch=True, settings=ConsoleSettings(panes=panes, rotate_s=0.05)) as it:
        seen: set[tuple[PaneId, ...]] = set()
        await it.until(lambda: seen.add(it.app.main.visible_panes) or len(seen) >= 2)  # type: ignore[func-returns-value]
        await it.until(lambda: it.app.main.visible_panes == (PaneId.COST,))
        await it.until(lambda: it.app.main.visible_panes == (PaneId.NODES,))


async def test_another_theme_changes_colours_and_glyphs_at_once() -> None:
    themes = tuple(find_theme(name) for name in ("dark", "light"))
    settings = ConsoleSettings(theme="dark", themes=themes)
    async with console(settings=settings) as it:
        before = it.app.style_of("state-ready")
        it.app.perform("theme")
        await it.until(lambda: it.app.style_of("state-ready") != before)
        assert it.app.theme == "light"
        assert it.app.theme_glyphs["ready"][0] == themes[1].states["ready"].glyph
