"""The watch mode on a wall: a clock that moves, alarms that stay, panes that take turns."""

from __future__ import annotations

import pytest

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import list_nodes, make_node, make_run, read_runs, report_source
from tpudash.domain.finding import Finding, Verdict
from tpudash.domain.run import RunState
from tpudash.store.changes import FindingsMade
from tpudash.store.snapshot import SourceState
from tpudash.store.store import Store
from tpudash.tui.actions import ACTIONS
from tpudash.tui.hints import KeyHints
from tpudash.tui.pane import PaneId
from tpudash.tui.settings import ConsoleSettings
from tpudash.tui.widgets.big_text import big


def quiet_store() -> Store:
    store = Store()
    list_nodes(store, make_node())
    read_runs(store, make_run())
    report_source(store, "nodes")
    return store


async def test_a_large_clock_moves_every_second() -> None:
    async with console(quiet_store(), is_watch=True, size=(100, 30)) as it:
        assert big("12:00:00")[0] in it.screen_text
        it.clock.move(1)
        await it.until(lambda: big("12:00:01")[0] in it.screen_text)
        assert "WATCH" in it.screen_text


async def test_on_a_low_screen_the_status_line_has_the_clock() -> None:
    async with console(quiet_store(), is_watch=True, size=(80, 20)) as it:
        assert "12:00:00 UTC" in it.screen_text
        it.clock.move(61)
        await it.until(lambda: "12:01:01 UTC" in it.screen_text)


async def test_the_clock_goes_on_while_the_display_is_paused() -> None:
    async with console(quiet_store(), is_watch=True, size=(100, 30)) as it:
        await it.press("p")
        it.clock.move(1)
        await it.until(lambda: big("12:00:01")[0] in it.screen_text)


async def test_an_alarm_stays_until_it_ends_and_says_since_when() -> None:
    async with console(quiet_store(), is_watch=True, size=(100, 30)) as it:
        assert it.app.main.wall is not None
        assert not it.app.main.wall.alarms
        read_runs(it.store, make_run(state=RunState.FAILED, reason="It ran out of memory."))
        await it.until(lambda: "demo: It ran out of memory." in it.screen_text)
        it.clock.move(300)
        report_source(it.store, "nodes", last_success=it.clock.now())
        await it.until(lambda: "FAILED 5m" in it.screen_text)
        read_runs(it.store, make_run())
        await it.until(lambda: "It ran out of memory." not in it.screen_text)


async def test_everything_that_is_wrong_is_an_alarm() -> None:
    async with console(quiet_store(), is_watch=True, size=(120, 60)) as it:
        wall = it.app.main.wall
        assert wall is not None
        list_nodes(it.store, make_node(health="UNHEALTHY_MAINTENANCE"), silent=["us-east1-d"])
        report_source(it.store, "logs", SourceState.FAILING, title="permission is missing")
        failed = Finding("run-stalled", "It stands still", Verdict.FAIL, "no step", subject="demo")
        it.store.apply(FindingsMade((failed,)))
        it.clock.move(500)
        await it.until(lambda: len(wall.alarms) == 5)
        told = " ".join(alarm.text for alarm in wall.alarms)
        for words in ("UNHEALTHY_MAINTENANCE", "us-east1-d", "permission", "no step", "is old"):
            assert words in told
        await it.until(lambda: "+1 more" in it.screen_text)


async def test_panes_take_turns_and_only_the_chosen_ones() -> None:
    settings = ConsoleSettings(panes=(PaneId.NODES, PaneId.COST), rotate_s=0.1)
    async with console(quiet_store(), is_watch=True, settings=settings) as it:
        seen: set[PaneId] = set()

        def has_seen_both() -> bool:
            seen.update(it.app.main.visible_panes)
            return seen == {PaneId.NODES, PaneId.COST} and it.app.main.is_zoomed

        await it.until(has_seen_both)


async def test_the_head_is_drawn_with_ascii_where_nothing_else_can_be_shown() -> None:
    settings = ConsoleSettings(ascii=True)
    async with console(quiet_store(), is_watch=True, settings=settings, size=(100, 30)) as it:
        head = it.screen_text.split("\n")[:4]
        assert all(line.isascii() for line in head), head


async def test_an_operators_console_has_no_such_head() -> None:
    async with console(quiet_store(), size=(100, 30)) as it:
        assert it.app.main.wall is None


@pytest.mark.parametrize("store", [None, Store()], ids=["full", "empty"])
async def test_no_text_names_a_key_that_watch_mode_does_not_have(
    store: Store | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: set[str] = set()
    known = KeyHints.key

    def key(self: KeyHints, action_id: str) -> str:
        named.add(action_id)
        return known(self, action_id)

    monkeypatch.setattr(KeyHints, "key", key)
    absent = {action.id for action in ACTIONS if action.needs_operator}
    async with console(store, is_watch=True, size=(100, 30)) as it:
        for pane in "12345":
            await it.press(pane, "?", "escape", "enter", "escape")
            for _ in range(8):
                await it.press("down")
        await it.press("o", "escape", "i", "escape", ":", "escape")
    assert sorted(named & absent) == []
