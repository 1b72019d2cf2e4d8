"""Pictures of each pane in each family of themes, small and large.

After a wanted change: pytest tests/snapshots --snapshot-update, and look at the pictures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped]

from tests.tui.factories import (
    FakeClock,
    FakeControl,
    FakeEmulator,
    FakeOperations,
    FakeShell,
    list_nodes,
    list_requests,
    make_node,
    make_request,
    make_run,
    no_background,
    read_runs,
)
from tests.tui.test_checklist_pane import FINDINGS
from tests.tui.test_utilization_pane import make_store
from tpudash.config.themes import find_theme
from tpudash.cost.prices import PriceBook
from tpudash.domain.run import RunState
from tpudash.store.changes import FindingsMade
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.app import TpudashApp
from tpudash.tui.pane import PaneId
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from textual.pilot import Pilot

    from tpudash.store.store import Store

FAMILIES = ("dark", "light", "high-contrast", "colour-blind", "ansi-dark", "ansi-light", "wall")
SIZES = ((80, 24), (160, 45))


def make_day() -> Store:
    """A store with something for every pane."""
    store = make_store()
    nodes = [*store.snapshot.nodes.values(), make_node("vision-1", "PREEMPTED", run="vision")]
    list_nodes(store, *nodes)
    list_requests(store, make_request())
    preempted = "Its spot node was preempted; R resumes it from step 300."
    read_runs(
        store,
        make_run(),
        make_run("vision", RunState.PREEMPTED, reason=preempted, step=320, checkpoint_step=300),
    )
    store.apply(FindingsMade(FINDINGS))
    return store


def make_app(theme: str, *, is_watch: bool = False) -> TpudashApp:
    store = make_day()
    return TpudashApp(
        store,
        clock=FakeClock(),
        prices=PriceBook.bundled(),
        background=no_background,
        operations=None if is_watch else FakeOperations(store),
        ports=OperatorPorts(emulator=FakeEmulator(), shell=FakeShell(), control=FakeControl()),
        settings=ConsoleSettings(theme=theme, themes=(find_theme(theme),)),
    )


async def settle(pilot: Pilot[None]) -> None:
    """Let the panes follow the selection now and not in a moment, and all be painted."""
    app = pilot.app
    assert isinstance(app, TpudashApp)
    await pilot.pause()
    app._tell_selection()
    for _ in range(3):
        await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", FAMILIES)
async def test_panes(snapshot: SnapshotAssertion, theme: str, size: tuple[int, int]) -> None:
    pictures = snapshot.use_extension(SVGImageExtension)
    app = make_app(theme)
    other = []
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.main.toggle_zoom()
        for pane in PaneId:
            app.main.focus_pane(pane)
            await settle(pilot)
            assert app.main.visible_panes == (pane,)
            picture = app.export_screenshot(title=f"{pane} {theme}", simplify=True)
            if picture != pictures(name=str(pane)):
                other.append(str(pane))
    assert not other, "compare the pictures: git diff after --snapshot-update"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_wall(snap_compare: Any, size: tuple[int, int]) -> None:
    app = make_app("wall", is_watch=True)
    assert snap_compare(app, terminal_size=size, run_before=settle)
