"""Pictures of the replay of a real preemption: before, at the preemption, and resumed.

After a wanted change: pytest tests/snapshots --snapshot-update, and look at the pictures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.snapshots.test_panes import settle
from tests.tui.test_replay import StandingClock
from tests.unit.store.test_recording import PREEMPTION
from tpudash.config.themes import find_theme
from tpudash.cost.prices import PriceBook
from tpudash.store.recording_player import Player, ReplayClock
from tpudash.store.recording_reader import Recording
from tpudash.tui.pane import PaneId
from tpudash.tui.replay import ReplayApp
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from textual.pilot import Pilot

MOMENTS = ("rough-1 READY", "rough-1 PREEMPTED", "rough-2 READY", "end")


@pytest.fixture(scope="module")
def recording() -> Iterator[Recording]:
    found = Recording(PREEMPTION)
    yield found
    found.close()


def moment_of(recording: Recording, name: str) -> datetime:
    if name == "end":
        return recording.ended
    return next(mark.at for mark in recording.marks if name in mark.text)


def replay_at(recording: Recording, name: str) -> ReplayApp:
    """Return the console as it stands at a moment of the recording."""
    clock = ReplayClock(StandingClock(), recording.started, recording.ended)
    player = Player(recording, clock)
    player.seek(moment_of(recording, name))
    clock.pause(on=True)
    theme = find_theme("dark")
    settings = ConsoleSettings(theme=theme.name, themes=(theme,))
    return ReplayApp(player, prices=PriceBook.bundled(), settings=settings)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_preemption_replayed(snap_compare: Any, recording: Recording, moment: str) -> None:
    app = replay_at(recording, moment)
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)


@pytest.mark.parametrize("pane", [PaneId.LOGS, PaneId.UTILIZATION], ids=str)
def test_a_pane_of_the_resumed_run(snap_compare: Any, recording: Recording, pane: PaneId) -> None:
    async def show(pilot: Pilot[None]) -> None:
        await settle(pilot)
        assert isinstance(pilot.app, ReplayApp)
        pilot.app.main.focus_pane(pane)
        pilot.app.main.toggle_zoom()
        await settle(pilot)

    app = replay_at(recording, "end")
    assert snap_compare(app, terminal_size=(120, 40), run_before=show)
