"""The page that shows everything about the selected thing, live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content

from tpudash.tui.screens.details_text import details_text
from tpudash.tui.screens.overlay import Page
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp, Subject

REDRAW_EVERY_S = 5


class DetailsScreen(Page):
    """Every field of the API's object, workers, labels, metadata, attempts and timeline."""

    def __init__(self, host: HostApp, subject: Subject) -> None:
        super().__init__(host, id="details-screen")
        self.subject = subject
        self._drawn_at: datetime | None = None

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with Vertical(classes="dialog page") as box:
            keys = self.host.hints.fill("(esc closes, {copy} copies)")
            box.border_title = Content(f"{self.subject.kind} {keys}")
            box.border_subtitle = Content(safe_text(self.subject.short_name, 60))
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        self._draw()
        self.query_one("#page-body").focus()

    def apply(self, changes: ChangeSet) -> None:
        """Bring the page up to date when its own thing changed."""
        names = {self.subject.name, self.subject.run, self.subject.node}
        if names & (changes.nodes | changes.requests | changes.runs):
            self._draw()

    def tick(self, now: datetime) -> None:
        """Move ages on, now and then."""
        if self._drawn_at is None or (now - self._drawn_at).total_seconds() >= REDRAW_EVERY_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn_at = self.host.context.now()
        self.show(details_text(self.subject, self.host))
