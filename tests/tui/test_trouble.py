"""Sources that fail, are throttled or fell silent are seen at once, with why and what helps."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import NOW, make_world, report_source
from tpudash.store.snapshot import SOURCES, SourceState
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from tpudash.store.store import Store

COMMAND = "gcloud auth application-default login"


def world(state: SourceState = SourceState.OK, *names: str, **more: object) -> Store:
    store = make_world()
    for name in SOURCES:
        report_source(store, name)
    for name in names:
        report_source(store, name, state, **more)
    return store


async def test_nothing_takes_room_while_all_is_well() -> None:
    async with console(world()) as it:
        assert it.app.main.trouble.wanted_rows == 0
        assert it.screen_text.split("\n")[1].startswith("─1 Nodes")


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 45)])
@pytest.mark.parametrize("is_watch", [False, True])
async def test_the_whole_command_that_helps_is_on_the_screen_and_goes_with_the_trouble(
    size: tuple[int, int], is_watch: bool
) -> None:
    names = ("nodes", "requests", "runs", "logs")
    title, hint = "the Google sign-in is over", f"sign in again with: {COMMAND}"
    store = world(SourceState.FAILING, *names, title=title, hint=hint)
    async with console(store, size=size, is_watch=is_watch) as it:
        shown = it.screen_text
        assert COMMAND in shown
        assert "nodes, requests +2 FAILING: the Google sign-in is over" in shown
        assert "450/600" in shown, "what was known stays"
        for name in names:
            report_source(store, name)
        await it.until(lambda: COMMAND not in it.screen_text)
        assert it.app.main.trouble.wanted_rows == 0


async def test_a_throttled_source_says_why_and_since_when() -> None:
    title = "Google wants fewer calls (metrics)"
    long_ago = NOW - timedelta(minutes=4)
    store = world(SourceState.THROTTLED, "metrics", title=title, last_success=long_ago)
    async with console(store) as it:
        line = it.screen_text.split("\n")[1]
        assert line.startswith(f" ▲ metrics THROTTLED: {title} (last answer 4m00s ago)")


async def test_a_source_that_fell_silent_is_stale_although_it_never_failed() -> None:
    async with console(world()) as it:
        it.clock.move(100)
        for name in SOURCES[1:]:
            report_source(it.store, name, last_success=it.clock.now())
        await it.until(lambda: "nodes STALE (last answer 1m40s ago)" in it.screen_text)
        assert "OLD DATA 1m43s" in it.screen_text


async def test_the_worst_trouble_comes_first_and_the_others_are_counted() -> None:
    store = world(SourceState.THROTTLED, "metrics", title="too many calls")
    report_source(store, "logs", SourceState.FAILING, title="permission is missing")
    async with console(store) as it:
        line = it.screen_text.split("\n")[1]
        assert "logs FAILING: permission is missing" in line
        assert "+1 more" in line


async def test_it_is_drawn_with_ascii_where_nothing_else_can_be_shown() -> None:
    store = world(SourceState.FAILING, "logs", title="no answer " * 20, hint="wait " * 40)
    async with console(store, settings=ConsoleSettings(ascii=True)) as it:
        rows = it.screen_text.split("\n")[:3]
        assert all(row.isascii() for row in rows), rows
