"""The console as a whole: what it shows, how its panes and keys behave, and what it survives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    NOW,
    ZONE,
    list_nodes,
    make_node,
    make_run,
    make_world,
    read_runs,
    report_source,
)
from tpudash.domain.finding import Finding, Verdict
from tpudash.errors import ConfigurationError
from tpudash.store.changes import FindingsMade
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.action import Offer
from tpudash.tui.actions import ACTIONS
from tpudash.tui.ascii_filter import plain
from tpudash.tui.pane import PaneId
from tpudash.tui.screens.details import DetailsScreen
from tpudash.tui.screens.help import HelpScreen
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.store.changes import ChangeSet
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


async def test_the_same_letters_move_in_every_pane() -> None:
    store = make_world()
    bad = Finding("run-stalled", "It stands still", Verdict.FAIL, "no step", subject="demo")
    store.apply(FindingsMade((bad, replace(bad, check_id="node-ready", title="Node is READY"))))
    async with console(store, size=(100, 30)) as it:
        await it.press("G")
        assert it.table.cursor_key == it.table.row_keys[-1]
        await it.press("g", "5", "j")
        await it.until(lambda: "Node is READY: demo" in it.screen_text)
        await it.press("k")
        await it.until(lambda: "It stands still: demo" in it.screen_text)
        await it.press("3", "k")
        await it.until(lambda: "standing still" in it.screen_text)
        await it.press("G")
        await it.until(lambda: "following" in it.screen_text)


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
        it.app.notify("日本 … 👩‍👩‍👧 é ▌", markup=False)
        for keys in (
            "1",
            "2",
            "3",
            "4",
            "5",
            "z",
            "?",
            "escape",
            "i",
            "escape",
            "L",
            "escape",
            ":",
        ):
            await it.press(keys)
            rows = it.screen_text.split("\n")
            assert all(line.isascii() for line in rows), (keys, rows)


@pytest.mark.parametrize("text", ["…▌ plain", "日本語", "a\u0301 é", "👩‍👩‍👧", "✗ fail ▲ warn"])
def test_what_is_drawn_in_ascii_takes_the_same_cells(text: str) -> None:
    shown = plain(text)
    assert shown.isascii()
    assert cell_len(shown) == cell_len(text)


async def test_what_fails_is_counted_in_the_status_line() -> None:
    async with console() as it:
        assert "wrong" not in it.screen_text.split("\n")[0]
        bad = Finding("run-stalled", "It stands still", Verdict.FAIL, "no step", subject="demo")
        it.store.apply(FindingsMade((bad, replace(bad, verdict=Verdict.WARN))))
        await it.until(lambda: "✗ 1 wrong" in it.screen_text.split("\n")[0])


async def test_names_of_hidden_panes_are_cut_before_what_is_said_of_them() -> None:
    async with console(size=(60, 15)) as it:
        bad = Finding("run-stalled", "It stands still", Verdict.FAIL, "no step", subject="demo")
        it.store.apply(FindingsMade((bad,)))
        await it.until(lambda: "5 Check 1 fail" in it.screen_text)
        assert "5 Checklist" not in it.screen_text
