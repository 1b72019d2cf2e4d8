"""Plays a recording into a store, at any speed, from any moment; the clock is the recording's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.store.masked import MaskedStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from tpudash.clock import Clock
    from tpudash.store.recording_reader import Recording
    from tpudash.store.store import Store

STEP_S: Final = 0.1
TURN_S: Final = 0.03
"""Seconds for which changes are applied before the screen has its turn."""
AT_ONCE: Final = 20
FAR_BEHIND: Final = 100
"""How many changes may wait while a moment still counts as reached."""
SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


class ReplayClock:
    """The time of a recording: runs at some speed, stands still, and can be moved.

    Args:
        real: The clock by which the screen itself goes on.
        start: The first moment.
        end: The last moment; time stands still there.
    """

    def __init__(self, real: Clock, start: datetime, end: datetime, speed: float = 1.0) -> None:
        self._real = real
        self._start, self._end = start, end
        self._speed = speed
        self._is_paused = False
        self._place = start
        self._since = real.monotonic()

    @property
    def speed(self) -> float:
        """Seconds of the recording for each real second."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        """Whether time stands still because the user wants it."""
        return self._is_paused

    @property
    def is_over(self) -> bool:
        """Whether the end is reached."""
        return self.now() >= self._end

    def now(self) -> datetime:
        """Return the moment of the recording that is shown."""
        if self._is_paused:
            return self._place
        passed = timedelta(seconds=(self._real.monotonic() - self._since) * self._speed)
        return min(self._end, self._place + passed)

    def monotonic(self) -> float:
        """Return seconds of the real clock."""
        return self._real.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait by the real clock."""
        await self._real.sleep(seconds)

    def move_to(self, moment: datetime) -> None:
        """Go to a moment, within the recording."""
        self._place = min(self._end, max(self._start, moment))
        self._since = self._real.monotonic()

    def pause(self, *, on: bool) -> None:
        """Stand still, or go on."""
        self.move_to(self.now())
        self._is_paused = on

    def set_speed(self, speed: float) -> None:
        """Go on at another speed."""
        self.move_to(self.now())
        self._speed = speed


class Player:
    """Keeps a store at the moment that the clock shows.

    Going back means to begin again with an empty store; `replaced` is told of the new one. What
    can't be applied within the screen's turn is left to `run`.

    Args:
        recording: What is played.
        clock: The recording's own time.
        spool: Folder for the texts of logs, or None to keep them in memory, and then fewer.

    Attributes:
        store: What is known at the moment that is shown.
        replaced: Is called with the new store after going back.
    """

    def __init__(self, recording: Recording, clock: ReplayClock, spool: Path | None = None) -> None:
        self.recording = recording
        self.clock = clock
        self._spool = spool
        self.store: Store = self._new_store()
        self.replaced: Callable[[Store], None] = lambda _: None
        self._played = 0

    @property
    def is_seeking(self) -> bool:
        """Whether it will take a while until what was recorded until now is applied."""
        wanted = self.recording.count_until(self.clock.now())
        return wanted - self._played > FAR_BEHIND

    @property
    def share_applied(self) -> float:
        """How much of what was recorded until now is applied, from 0 to 1."""
        wanted = self.recording.count_until(self.clock.now())
        return min(1.0, self._played / wanted) if wanted else 1.0

    async def run(self) -> None:
        """Play until cancelled; at the end of the recording the last moment stays."""
        while True:
            while not self.catch_up():
                await self.clock.sleep(0)
            await self.clock.sleep(STEP_S)

    def catch_up(self) -> bool:
        """Apply what was recorded until now, for one turn, and say whether that is all of it."""
        wanted = self.recording.count_until(self.clock.now())
        until = self.clock.monotonic() + TURN_S
        while self._played < wanted:
            first, self._played = self._played, min(wanted, self._played + AT_ONCE)
            for change in self.recording.changes(first, self._played):
                self.store.apply(change)
            if self.clock.monotonic() >= until:
                break
        return self._played >= wanted

    def seek(self, moment: datetime) -> None:
        """Show another moment, at once where it is near."""
        self.clock.move_to(moment)
        if self.recording.count_until(self.clock.now()) >= self._played:
            self.catch_up()
            return
        self.store, self._played = self._new_store(), 0
        self.catch_up()
        self.replaced(self.store)

    def _new_store(self) -> Store:
        store = MaskedStore()
        if self._spool is not None:
            store.logs.spool_in(self._spool)
        return store

    def skip(self, seconds: float) -> None:
        """Go forward, or back, by seconds of the recording."""
        self.seek(self.clock.now() + timedelta(seconds=seconds))

    def next_mark(self) -> str:
        """Go to the next moment at which nodes changed, and say which; "" where there is none."""
        now = self.clock.now()
        mark = next((one for one in self.recording.marks if one.at > now), None)
        if mark is None:
            return ""
        self.seek(mark.at)
        return ", ".join(one.text for one in self.recording.marks if one.at == mark.at)

    def faster(self, step: int) -> float:
        """Play at the next higher (1) or lower (-1) speed, and return it."""
        speed = self.clock.speed
        if step > 0:
            found = next((one for one in SPEEDS if one > speed), SPEEDS[-1])
        else:
            found = next((one for one in reversed(SPEEDS) if one < speed), SPEEDS[0])
        self.clock.set_speed(found)
        return found
