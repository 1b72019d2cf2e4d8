"""How a console lives: operations below it, how it ends, what feeds it, any size, any theme."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    make_progress,
    read_runs,
    report_progress,
)
from tpudash.config.themes import find_theme
from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.domain.operation import OperationState
from tpudash.store.store import Store
from tpudash.tui.pane import PaneId
from tpudash.tui.screens.confirm import ConfirmDialog
from tpudash.tui.screens.operations import OperationsScreen
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from tpudash.tui.app import TpudashApp


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
