"""One line of a log in full: all its text, what is folded behind it, its payload, who wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from textual.containers import Vertical
from textual.content import Content

from tpudash.logtext.entries import UNKNOWN_TIME
from tpudash.tui.screens.overlay import Page, Paragraphs

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tpudash.tui.pane import HostApp
    from tpudash.tui.widgets.log_view_text import LogRow

MOST_MEMBERS: Final = 400
MOST_CHARACTERS: Final = 200_000
LONGEST_PIECE: Final = 1_500


def pieces(text: str) -> list[str]:
    """Return a text as lines that are short enough to be shown whole, and say what is left out."""
    lines = text[:MOST_CHARACTERS].split("\n")
    found = [
        line[at : at + LONGEST_PIECE]
        for line in lines
        for at in range(0, max(1, len(line)), LONGEST_PIECE)
    ]
    left_out = len(text) - MOST_CHARACTERS
    return [*found, f"({left_out:,} more characters)"] if left_out > 0 else found


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
            box.border_title = Content(self.host.hints.fill("log line (esc closes, {copy} copies)"))
            yield self.body()

    def on_mount(self) -> None:
        """Write the page."""
        page = Paragraphs(self.host)
        row, entry = self._row, self._row.entry
        is_known = entry.timestamp != UNKNOWN_TIME
        page.heading(
            f"{entry.timestamp:%Y-%m-%d %H:%M:%S.%f} UTC" if is_known else "Without a time"
        )
        page.field("severity", entry.severity)
        page.field("node, worker", f"{entry.node_id or '-'}, {entry.worker_id or '-'}")
        page.field("run, attempt", f"{entry.run or '-'}, {entry.attempt or '-'}")
        page.field("stream", entry.stream or "-")
        if row.workers > 1:
            page.field("said by", f"{row.workers} workers")
        if self._tag:
            page.field("classified", self._tag)
        page.heading("Text")
        for piece in pieces(row.line.text):
            page.line(piece)
        if self._members:
            page.heading(f"Folded behind it: {len(self._members):,} lines")
            for text in self._members[:MOST_MEMBERS]:
                for piece in pieces(text):
                    page.line(piece)
            left_out = len(self._members) - MOST_MEMBERS
            if left_out > 0:
                page.line(f"({left_out:,} more lines; unfold them in the log)")
        if entry.payload is not None:
            page.heading("Payload")
            for piece in pieces(json.dumps(entry.payload, indent=2, default=str)):
                page.line(piece)
        self.show(page.text)
        self.query_one("#page-body").focus()
