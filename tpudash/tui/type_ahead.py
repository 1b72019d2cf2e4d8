"""Keys typed faster than a dialog opens: they are held and given to it, never to what lies below.

A dialog takes part of a second to be mounted over a slow machine; a `p` meant for the palette's
field must not pause the display instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual import events

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

MOST_UNDERWAY: Final = 64


class TypeAhead:
    """Holds keys that were typed for a dialog which is not ready for them yet.

    A key passes through the queues of the focused widget and of those around it before it comes
    back to the app, so a dialog may have opened while it was under way.
    """

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._held: list[events.Key] = []
        self._underway: dict[events.Key, Screen[object]] = {}
        self._is_replaying = False

    def holds(self, event: events.Key) -> bool:
        """Take the key if it is too early for it; it comes again by itself."""
        screen = self._app.screen
        if event.is_forwarded:
            aimed_at = self._underway.pop(event, screen)
            if aimed_at is screen or not screen.is_modal:
                return False
            event.stop()
            event = events.Key(event.key, event.character)
        elif self._is_replaying or not self._must_wait(screen):
            self._sent_to(screen, event)
            return False
        if not self._held:
            screen.call_after_refresh(self._replay)
        self._held.append(event)
        return True

    def _must_wait(self, screen: Screen[object]) -> bool:
        return bool(self._held) or (screen.is_modal and not _is_ready(screen))

    def _sent_to(self, screen: Screen[object], event: events.Key) -> None:
        self._underway[event] = screen
        while len(self._underway) > MOST_UNDERWAY:
            del self._underway[next(iter(self._underway))]

    async def _replay(self) -> None:
        screen = self._app.screen
        if screen.is_modal and not _is_ready(screen):
            screen.call_after_refresh(self._replay)
            return
        self._is_replaying = True
        try:
            while self._held:
                await self._app.on_event(self._held.pop(0))
        finally:
            self._is_replaying = False


def _is_ready(screen: Screen[object]) -> bool:
    """Whether the screen was mounted and came to the top, so that its focus is where it begins."""
    return screen.is_mounted and screen.stack_updates > 0 and screen.focused is not None
