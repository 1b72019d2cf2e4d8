"""Watch mode on a real emulator: every key, palette entry and action, and no call but reads."""

from __future__ import annotations

import string
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from textual.command import DiscoveryHit
from textual.widgets import Input

from tests.emulator_fixture import Cloud, fast_settings, running_cloud
from tpudash.commands.screen import ScreenParts, console_settings
from tpudash.commands.state import CliState
from tpudash.config.paths import Paths
from tpudash.gateways.read_only import READ_METHODS
from tpudash.tui.actions import ACTIONS
from tpudash.tui.app import TpudashApp
from tpudash.tui.palette import ActionProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from textual.pilot import Pilot

LONGEST_WAIT = 400
LEAVING = {"q", "ctrl+q", "ctrl+c", "ctrl+z"}
"""Keys that end or suspend the screen; they are walked last."""
NAMED_KEYS = (
    *("enter", "space", "tab", "shift+tab", "escape", "backspace", "delete", "insert"),
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
    *(f"f{number}" for number in range(1, 13)),
    *(f"ctrl+{letter}" for letter in string.ascii_lowercase),
)


@pytest.fixture
async def emulated(tmp_path: Path) -> AsyncIterator[Cloud]:
    async with running_cloud(fast_settings(tmp_path / "emulator")) as cloud:
        labels = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}
        await cloud.create("demo-1", labels=labels)
        await cloud.create("stray")
        await cloud.control.counters(reset=True)
        yield cloud


def watch_on(cloud: Cloud, folder: Path) -> tuple[ScreenParts, TpudashApp]:
    """Return the watch mode as the command builds it."""
    state = CliState(flags={"endpoint": cloud.endpoint, "project": "demo"})
    state.__dict__["paths"] = Paths(folder / "config", folder / "state", folder / "cache")
    parts = ScreenParts(state)
    app = TpudashApp(
        parts.store,
        clock=parts.clock,
        prices=lambda: parts.prices,
        background=parts.feed,
        settings=console_settings(state, is_watch=True),
    )
    return parts, app


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(LONGEST_WAIT):
        if condition():
            return
        await pilot.pause(0.02)
    pytest.fail("never came true")


async def back_to_main(app: TpudashApp, pilot: Pilot[None]) -> None:
    """Close whatever a key opened."""
    while app.screen is not app.main:
        app.pop_screen()
        await pilot.pause()
    if isinstance(app.focused, Input):
        await pilot.press("escape")


async def test_no_key_no_palette_entry_and_no_action_changes_anything(
    emulated: Cloud, tmp_path: Path
) -> None:
    parts, app = watch_on(emulated, tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: len(parts.store.snapshot.nodes) == 2)
        await walk_keys(app, pilot)
        await walk_palette(app, pilot)
        for action in ACTIONS:
            if action.id != "quit":
                app.perform(action.id)
                await pilot.pause()
                await back_to_main(app, pilot)
        assert await emulated.control.counters() == {}
        reading = (await emulated.control.call("Counters"))["reading"]
        assert reading
        assert {f"/{name.lstrip('/')}" for name in reading} <= READ_METHODS
        await pilot.press("q")
    assert not app.is_running


async def walk_keys(app: TpudashApp, pilot: Pilot[None]) -> None:
    """Press all keys in the first pane, and in each further one those that mean something."""
    from textual.keys import _character_to_key

    printable = {_character_to_key(character) for character in string.printable if character > " "}
    keys = {*printable, *NAMED_KEYS}
    for pane_id, pane in app.main.panes.items():
        app.main.focus_pane(pane_id)
        nodes = [app, app.main, pane, *pane.walk_children()]
        bound = {key for node in nodes for key in node._bindings.key_to_bindings}
        for key in sorted((keys | bound) - LEAVING):
            await pilot.press(key)
            if app.screen is not app.main:
                await back_to_main(app, pilot)
        await back_to_main(app, pilot)
        keys = set()


async def walk_palette(app: TpudashApp, pilot: Pilot[None]) -> None:
    """Take every entry that the palette offers, and every system command of Textual's."""
    provider = ActionProvider(app.screen)
    hits = [hit async for hit in provider.discover()]
    assert {hit.text for hit in hits if isinstance(hit, DiscoveryHit)} >= {"zoom", "help"}
    for hit in hits:
        if getattr(hit, "text", "") == "quit":
            continue
        hit.command()
        await pilot.pause()
        await back_to_main(app, pilot)
    sources = [source() if not isinstance(source, type) else source for source in app.COMMANDS]
    assert sources == [ActionProvider], "nothing else adds entries to the palette"


def test_the_watch_command_imports_nothing_that_could_act() -> None:
    code = (
        "import sys\n"
        "import tpudash.commands.watch, tpudash.commands.screen, tpudash.commands.sources\n"
        "import tpudash.tui.app, tpudash.gateways.connection, tpudash.gateways.read_only\n"
        "far = ('tpudash.operations', 'tpudash.emulator', 'tpudash.commands.operator_ports')\n"
        "print([m for m in sys.modules if any(m == f or m.startswith(f + '.') for f in far)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
