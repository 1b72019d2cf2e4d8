"""One line of a log in full: all its text, what is folded behind it, its payload, who wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical

from tpudash.tui.screens.overlay import Page, Paragraphs

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tpudash.tui.pane import HostApp
    from tpudash.tui.widgets.log_view_text import LogRow

MOST_MEMBERS: Final = 400
MOST_CHARACTERS: Final = 200_000


class LogLinePage(Page):
    """Shows a line in full.

    Args:
        row: The line.
        members: The texts of what is folded behind it.
        tag: What the classifier named it, or "".
    """

    def __init__(self, host: HostApp, row: LogRow, members: list[str], tag: str) -> None:
        super().__init__(host, id="log-line")
        self._row = row
        self._members = members
        self._tag = tag

    def compose(self) -> ComposeResult:
        """Lay out the page."""
        with Vertical(classes="dialog page") as box:
            box.border_title = "log line (esc closes, y copies)"
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        page = Paragraphs(self.host)
        row, entry = self._row, self._row.entry
        page.heading(f"{entry.timestamp:%Y-%m-%d %H:%M:%S.%f} UTC")
        page.field("severity", entry.severity)
        page.field("node, worker", f"{entry.node_id or '-'}, {entry.worker_id or '-'}")
        page.field("run, attempt", f"{entry.run or '-'}, {entry.attempt or '-'}")
        page.field("stream", entry.stream or "-")
        if row.workers > 1:
            page.field("said by", f"{row.workers} workers")
        if self._tag:
            page.field("classified", self._tag)
        page.heading("Text")
        page.lines(row.line.text[:MOST_CHARACTERS])
        if self._members:
            page.heading(f"Folded behind it: {len(self._members):,} lines")
            for text in self._members[:MOST_MEMBERS]:
                page.lines(text)
        if entry.payload is not None:
            page.heading("Payload")
            page.lines(json.dumps(entry.payload, indent=2, ensure_ascii=False, default=str))
        self.show(page.text)
        self.query_one("#page-body").focus()
