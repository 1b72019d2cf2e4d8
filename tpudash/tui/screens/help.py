"""The help screen: every key from the registry, and what the focused pane shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical

from tpudash.tui.action import Danger
from tpudash.tui.actions import ACTIONS
from tpudash.tui.screens.overlay import Page, Paragraphs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.text import Text
    from textual.app import ComposeResult

    from tpudash.tui.action import Situation
    from tpudash.tui.pane import HostApp, Pane

MOVES = (
    ("↑ ↓ j k", "Move the cursor"),
    ("pgup pgdn", "Move by a screen"),
    ("home end g G", "Go to the first or the last row"),
    ("tab shift+tab", "Go to the next or the previous pane"),
    ("esc", "Close what is open"),
)


class HelpScreen(Page):
    """Generated from the registry, so that it cannot tell a lie."""

    def __init__(
        self,
        host: HostApp,
        pane: Pane,
        keymap: Mapping[str, tuple[str, ...]],
        situation: Situation,
    ) -> None:
        super().__init__(host, id="help-screen")
        self._pane = pane
        self._keymap = keymap
        self._situation = situation

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with Vertical(classes="dialog page") as box:
            box.border_title = "Help (esc closes)"
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        self.show(self._text())
        self.query_one("#page-body").focus()

    def _text(self) -> Text:
        page = Paragraphs(self.host)
        page.heading(f"The {self._pane.title.lower()} pane")
        if self._pane.help_text:
            page.line(self.host.hints.fill(self._pane.help_text), indent=1)
        groups: dict[str, list[tuple[str, str, Danger]]] = {}
        for action in ACTIONS:
            if not action.exists(self._situation):
                continue
            if action.scope not in {None, self._pane.pane_id}:
                continue
            keys = " ".join(self._keymap[action.id]) or "palette"
            words = self.host.hints.fill(action.help)
            groups.setdefault(action.group, []).append((keys, words, action.danger))
        for group in sorted(groups, key=lambda name: (name != self._pane.title, name)):
            page.heading(group)
            for keys, words, danger in groups[group]:
                variable = "" if danger is Danger.NONE else "mode-operator"
                page.field(keys, words, self.host.style_of(variable), width=14)
        page.heading("Moving")
        for keys, words in MOVES:
            page.field(keys, words, width=14)
        return page.text
