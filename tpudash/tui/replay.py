"""The console over a recording: watch mode, with keys that move through time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from tpudash.tui.action import Offer
from tpudash.tui.alarms import AlarmNotices
from tpudash.tui.app import TpudashApp
from tpudash.tui.handlers import Handlers
from tpudash.tui.panes import create_panes
from tpudash.tui.screens.main import MainScreen
from tpudash.tui.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tpudash.store.store import Store
    from tpudash.tui.action import Situation

SHORT_S: Final = 30.0
LONG_S: Final = 600.0


class PlayerPort(Protocol):
    """What the keys ask of whatever plays the recording."""

    @property
    def store(self) -> Store:
        """What is known at the moment that is shown."""
        ...

    @property
    def clock(self) -> Any:
        """The recording's clock: `now`, `speed`, `is_paused`, `is_over`, `pause`."""
        ...

    @property
    def is_seeking(self) -> bool:
        """Whether the moment that was asked for is not reached yet."""
        ...

    @property
    def share_applied(self) -> float:
        """How much of what was recorded until now is shown, from 0 to 1."""
        ...

    replaced: Callable[[Store], None]

    async def run(self) -> None:
        """Play until cancelled."""
        ...

    def skip(self, seconds: float) -> None:
        """Go forward, or back."""
        ...

    def next_mark(self) -> str:
        """Go to the next change of a node, and say which."""
        ...

    def faster(self, step: int) -> float:
        """Play faster (1) or slower (-1), and return the speed."""
        ...


class ReplayApp(TpudashApp):
    """Watch mode over a player; there is no connection that anything could go through."""

    def __init__(self, player: PlayerPort, **options: Any) -> None:
        self._player = player
        self._lives = 0
        super().__init__(player.store, clock=player.clock, background=player.run, **options)
        player.replaced = self._take_store
        self._handlers |= self._replay_handlers()

    def on_mount(self) -> None:
        """Show where in the recording the screen is."""
        self._show_place()
        self.set_interval(0.5, self._show_place)

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken now."""
        usual = super().situation
        return replace(usual, offers=usual.offers | {Offer.REPLAY})

    def _tick(self) -> None:
        # Panes of a screen that was only just made have nothing to move on yet.
        if all(pane.is_mounted for pane in self.main.panes.values()):
            super()._tick()

    def _replay_handlers(self) -> dict[str, Callable[[], None]]:
        player = self._player
        return {
            "replay-pause": self._pause,
            "replay-forward": lambda: self._moved(player.skip, SHORT_S),
            "replay-back": lambda: self._moved(player.skip, -SHORT_S),
            "replay-far-forward": lambda: self._moved(player.skip, LONG_S),
            "replay-far-back": lambda: self._moved(player.skip, -LONG_S),
            "replay-next": self._next,
            "replay-faster": lambda: self._moved(player.faster, 1),
            "replay-slower": lambda: self._moved(player.faster, -1),
        }

    def _pause(self) -> None:
        clock = self._player.clock
        clock.pause(on=not clock.is_paused)
        self._show_place()

    def _moved(self, move: Callable[[Any], object], by: float) -> None:
        move(by)
        self._show_place()

    def _next(self) -> None:
        found = self._player.next_mark()
        words = found or "No node changes after this moment."
        self.notify(words, severity="information", markup=False, timeout=3)
        self._show_place()

    def _show_place(self) -> None:
        clock = self._player.clock
        now: datetime = clock.now()
        if self._player.is_seeking:
            share = self._player.share_applied
            self.main.status.mode = f"REPLAY {now:%m-%d %H:%M:%S} SEEKING {share:.0%}"
            self._tick_status(now)
            return
        state = "END" if clock.is_over else "PAUSED" if clock.is_paused else f"x{clock.speed:g}"
        self.main.status.mode = f"REPLAY {now:%m-%d %H:%M:%S} {state}"
        self._tick_status(now)

    def _tick_status(self, now: datetime) -> None:
        if self.main.is_mounted:
            self.main.status.tick(now)

    def _take_store(self, store: Store) -> None:
        """Begin again with another store: what panes remember is not known yet at that moment."""
        before = self.main
        focused, is_zoomed = before.current.pane_id, before.is_zoomed
        self.stage.close()
        self.context.store, self.context.held, self.context.subject = store, None, None
        panes = create_panes(self.settings.panes)
        self.main = MainScreen(self, panes, self.keymap, project=self.settings.project)
        notices = AlarmNotices(self)
        self.stage = Stage(
            self, self.main, self._update_footer, self._control_changed, notices.look
        )
        self._handlers = {**Handlers(self, None).table(), **self._replay_handlers()}
        self._show_main()
        self.stage.open()

        def as_before() -> None:
            self.main.focus_pane(focused)
            if is_zoomed:
                self.main.toggle_zoom()
            self._show_place()

        self.call_after_refresh(as_before)

    def _show_main(self) -> None:
        """Show the new main screen in a mode of its own, and drop the mode before it."""
        before = self.current_mode
        self._lives += 1
        mode = f"replay-{self._lives}"
        self.add_mode(mode, lambda: self.main)
        self.switch_mode(mode)
        if self._lives > 1:
            self.remove_mode(before)
