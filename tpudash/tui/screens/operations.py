"""The page of all operations, with their steps and why they failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content

from tpudash.tui.screens.overlay import Page
from tpudash.tui.screens.plan_text import operations_text

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp


class OperationsScreen(Page):
    """Newest first; live."""

    def __init__(self, host: HostApp) -> None:
        super().__init__(host, id="operations-screen")
        for key in host.hints.keys("follow"):
            self.take_key(key, f"app.press({key!r})")

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with Vertical(classes="dialog page") as box:
            is_watch = self.host.context.options.is_watch
            follows = "" if is_watch else ", {follow} follows what was left behind"
            words = f"Operations (esc closes{follows})"
            box.border_title = Content(self.host.hints.fill(words))
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        self.tick(self.host.context.now())
        self.query_one("#page-body").focus()

    def apply(self, changes: ChangeSet) -> None:
        """Bring the page up to date."""
        if changes.operations:
            self.tick(self.host.context.now())

    def tick(self, now: datetime) -> None:
        """Move ages on."""
        operations = self.host.context.store.snapshot.operations
        self.show(operations_text(operations, self.host, now))
