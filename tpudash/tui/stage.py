"""What reaches the screen: coalesced changes and one tick a second, held back while paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.store.changes import NOTHING, ChangeSet
from tpudash.tui.feed import ChangeFeed
from tpudash.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.pane import HostApp
    from tpudash.tui.screens.main import MainScreen


class Stage:
    """Passes changes and ticks on to the main screen and to what is open over it.

    Args:
        connected: Is called when the connection says what it is.
        control_changed: Is called when control of the project changed hands.
        alarms_changed: Is called when an alarm about money was raised or is over.
    """

    def __init__(
        self,
        host: HostApp,
        main: MainScreen,
        connected: Callable[[], None],
        control_changed: Callable[[], None],
        alarms_changed: Callable[[], None],
    ) -> None:
        self._host = host
        self._main = main
        self._connected = connected
        self._control_changed = control_changed
        self._alarms_changed = alarms_changed
        self._feed: ChangeFeed | None = None
        self._held = NOTHING
        self._held_count = 0

    def open(self) -> None:
        """Begin to listen to the store."""
        context = self._host.context
        self._feed = ChangeFeed(context.store, context.clock, self.take, self._host.set_timer)

    def close(self) -> None:
        """Hear of nothing any more."""
        if self._feed is not None:
            self._feed.close()

    def take(self, changes: ChangeSet) -> None:
        """Show changes, or hold them back; what is open over the screen is always up to date."""
        if self._host.context.is_paused:
            self._held = self._held.merge(changes)
            self._held_count += 1
            self._main.status.hold(self._held_count)
        else:
            self._main.apply(changes)
        for overlay in self._overlays():
            overlay.apply(changes)
        if changes.connection:
            self._connected()
        if changes.control:
            self._control_changed()
        if changes.alarms:
            self._alarms_changed()

    def tick(self) -> None:
        """Move ages and dollars on; while paused, only the status line and the operations."""
        now = self._host.context.now()
        if self._host.context.is_paused:
            self._main.tick_frame(now)
        else:
            self._main.tick(now)
        for overlay in self._overlays():
            overlay.tick(now)

    def toggle_pause(self) -> None:
        """Hold the display still, or show at once all that was held back."""
        context = self._host.context
        if not context.is_paused:
            context.held = context.store.snapshot
            self._main.status.hold(0)
            return
        context.held = None
        changes, self._held, self._held_count = self._held, NOTHING, 0
        self._main.status.hold(0)
        if changes:
            self._main.apply(changes)

    def _overlays(self) -> list[Overlay[Any]]:
        return [
            screen
            for screen in self._host.screen_stack
            if isinstance(screen, Overlay) and screen.is_mounted
        ]
