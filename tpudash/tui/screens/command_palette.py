"""Textual's palette, proof against keys that come faster than it closes."""

from __future__ import annotations

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.widgets import Button, Input, OptionList


class ActionPalette(CommandPalette):
    """Finds an action by its name and takes it once."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close this and nothing else; Textual would take away whatever is uppermost."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    @on(Input.Submitted)
    @on(Button.Pressed)
    @on(OptionList.OptionSelected)
    def _chosen_once(
        self, event: Input.Submitted | Button.Pressed | OptionList.OptionSelected
    ) -> None:
        """Keep a second choice, which waited while the first was carried out, from being one."""
        if self.app.screen is not self:
            event.stop()
            event.prevent_default()
