"""A recording of a real preemption, played in the whole screen, with its keys."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.tui.conftest import LONGEST_WAIT
from tests.tui.factories import FakeClock
from tests.unit.store.test_recording import PREEMPTION
from tpudash.cost.prices import PriceBook
from tpudash.store.recording_player import Player, ReplayClock
from tpudash.store.recording_reader import Recording
from tpudash.tui.pane import PaneId
from tpudash.tui.replay import ReplayApp
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from textual.pilot import Pilot


class StandingClock(FakeClock):
    """Time that stands still, while the screen goes on."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))


class Replay:
    """A running replay."""

    def __init__(self, app: ReplayApp, pilot: Pilot[None], player: Player) -> None:
        self.app, self.pilot, self.player = app, pilot, player

    @property
    def text(self) -> str:
        return "\n".join(
            "".join(segment.text for segment in strip)
            for strip in self.app.screen._compositor.render_strips()
        )

    async def until(self, condition: Callable[[], object]) -> None:
        for _ in range(LONGEST_WAIT):
            if condition():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(self.text)

    async def press(self, key: str) -> None:
        await self.pilot.press(key)
        await self.pilot.pause()


@asynccontextmanager
async def replaying(size: tuple[int, int] = (120, 40)) -> AsyncIterator[Replay]:
    recording = Recording(PREEMPTION)
    clock = ReplayClock(StandingClock(), recording.started, recording.ended)
    player = Player(recording, clock)
    player.catch_up()
    app = ReplayApp(player, prices=PriceBook.bundled(), settings=ConsoleSettings())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Replay(app, pilot, player)
    recording.close()


async def test_the_story_of_a_preemption_is_walked_through_by_keys() -> None:
    async with replaying() as it:
        assert "REPLAY" in it.text
        assert "OPERATOR" not in it.text
        for state in ("rough-1", "PREEMPTED"):
            await it.press(";")
            await it.until(lambda state=state: state in it.text)  # type: ignore[misc]
        await it.press(";")
        await it.press(";")
        await it.until(lambda: "rough-2" in it.text)
        await it.press(")")
        await it.until(lambda: "END" in it.text)
        await it.until(lambda: "TRAINING" in it.text)


async def test_going_back_keeps_the_pane_and_forgets_the_future() -> None:
    async with replaying((100, 30)) as it:
        await it.press(")")
        await it.until(lambda: "rough-2" in it.text)
        await it.press("3")
        await it.press("z")
        assert it.app.main.is_zoomed
        before = it.app.main
        await it.press("<")
        await it.until(lambda: it.app.main is not before and it.app.main.is_mounted)
        await it.until(lambda: it.app.main.is_zoomed)
        assert it.app.main.current.pane_id is PaneId.LOGS
        await it.press("(")
        await it.press("1")
        await it.press("z")
        await it.until(lambda: "rough-2" not in it.text)
        assert not it.player.store.snapshot.nodes


async def test_pause_and_speed_are_shown() -> None:
    async with replaying((100, 24)) as it:
        await it.press("}")
        await it.until(lambda: " x2 " in it.text)
        await it.press("{")
        await it.press("{")
        await it.until(lambda: " x0.5 " in it.text)
        await it.press("p")
        await it.until(lambda: "PAUSED" in it.text)
        assert it.player.clock.is_paused
        await it.press("p")
        await it.until(lambda: "PAUSED" not in it.text)


async def test_nothing_in_a_replay_can_change_anything() -> None:
    async with replaying((100, 24)) as it:
        for key in "LRDAFT":
            await it.press(key)
        assert len(it.app.screen_stack) == 1
