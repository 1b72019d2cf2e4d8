"""The footer: the keys that matter here and now, from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from tpudash.tui.action import Danger
from tpudash.tui.actions import ACTIONS
from tpudash.tui.widgets.line import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual import events

    from tpudash.tui.action import Action, Situation
    from tpudash.tui.pane import HostApp

# What a newcomer looks for stays longest when the line is short.
_FIRST: Final = (
    *("help", "quit", "launch", "resume", "delete", "palette", "filter", "zoom", "details"),
    *("shell", "sort", "take-control", "pause", "operations", "copy"),
)


class KeyFooter(Line):
    """One line of keys at the bottom."""

    DEFAULT_CSS = """
    KeyFooter { background: $panel; }
    """

    def __init__(self, host: HostApp, keymap: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(id="footer")
        self._host = host
        self._keymap = keymap
        self._situation: Situation | None = None

    def on_resize(self, _event: events.Resize) -> None:
        """Show as many keys as fit."""
        self._draw()

    def update(self, situation: Situation) -> None:
        """Show the keys for another situation."""
        if situation != self._situation:
            self._situation = situation
            self._draw()

    def notify_style_update(self) -> None:
        """Take on another theme."""
        super().notify_style_update()
        self._draw()

    def _draw(self) -> None:
        situation = self._situation
        if situation is None:
            return
        keys = self._host.style_of("footer-key-foreground", bold=True)
        muted = self._host.style_of("muted")
        warning = self._host.style_of("mode-operator", bold=True)
        chosen = self._choose(situation, self.size.width)
        text = Text()
        for action in ACTIONS:
            if action.id in chosen:
                is_act = action.danger is not Danger.NONE
                is_dead = bool(action.hindrance(situation, self._host.hints))
                style = muted if is_dead else warning if is_act else keys
                text.append(f" {self._keymap[action.id][0]}", style)
                text.append(f" {action.label} ", muted)
        self.show(text)

    def _choose(self, situation: Situation, width: int) -> set[str]:
        """Return the ids of the actions that have room."""

        def rank(action: Action) -> int:
            return _FIRST.index(action.id) if action.id in _FIRST else len(_FIRST)

        chosen = set()
        for action in sorted(ACTIONS, key=rank):
            if not self._is_wanted(action, situation):
                continue
            width -= cell_len(f" {self._keymap[action.id][0]} {action.label} ")
            if width < 0:
                break
            chosen.add(action.id)
        return chosen

    def _is_wanted(self, action: Action, situation: Situation) -> bool:
        if not (action.in_footer and self._keymap[action.id] and action.takes_key(situation)):
            return False
        key = self._keymap[action.id][0]
        return not any(
            other.is_conditional and key in self._keymap[other.id] and other.takes_key(situation)
            for other in ACTIONS
            if other is not action
        )
