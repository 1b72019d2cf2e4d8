"""What a log entry looks like in words: one harmless line, bounded whatever the entry holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells

from tpudash.domain.log import Severity
from tpudash.tui.text import ESCAPES, safe_text
from tpudash.logtext.events import EVENT_KINDS, describe_event

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry

PAINT_LIMIT: Final = 1_000
"""Characters of one line that are ever painted; the entry keeps the whole text."""
SEARCH_LIMIT: Final = 64 * 1024
"""Characters of one entry that a filter looks at."""
MAX_LINES: Final = 200
_CACHED_LENGTH: Final = 400

_KIND_OF_SEVERITY: Final = {
    Severity.DEFAULT: "info",
    Severity.DEBUG: "debug",
    Severity.INFO: "info",
    Severity.NOTICE: "notice",
    Severity.WARNING: "warning",
    Severity.ERROR: "error",
    Severity.CRITICAL: "critical",
    Severity.ALERT: "critical",
    Severity.EMERGENCY: "critical",
}
RANKS: Final = {severity: severity.rank for severity in Severity}
"""Place of each severity in their order."""
MARKS: Final = {
    "debug": ("D", "D"),
    "info": (" ", " "),
    "notice": ("N", "N"),
    "warning": ("W", "W"),
    "error": ("E", "E"),
    "critical": ("C", "C"),
    "step": ("·", "."),
    "checkpoint": ("✓", "+"),
    "restart": ("↻", "@"),
}
"""The mark of each kind of line, and its ASCII stand-in, so that colour never stands alone."""


class LogRow:
    """One entry in a view, known by its arrival number, with its text made once it is needed."""

    __slots__ = ("_needle", "_text", "entry", "number")

    def __init__(self, number: int, entry: LogEntry) -> None:
        self.number = number
        self.entry = entry
        self._text: str | None = None
        self._needle: str | None = None

    @property
    def text(self) -> str:
        """The entry as one harmless line of bounded length."""
        if self._text is None:
            self._text = entry_text(self.entry)
        return self._text

    @property
    def haystack(self) -> str:
        """What a filter searches, in lower case."""
        if self._needle is not None:
            return self._needle
        text = self.entry.text[:SEARCH_LIMIT]
        if self.entry.payload is not None:
            text = f"{self.text}\n{text}"
        elif "\x1b" in text:
            text = ESCAPES.sub("", text)
        lowered = text.lower()
        if len(lowered) <= _CACHED_LENGTH:
            self._needle = lowered
        return lowered

    @property
    def rank(self) -> int:
        """Place of its severity in the order of severities."""
        return RANKS[self.entry.severity]

    @property
    def kind(self) -> str:
        """The theme's name for this kind of line: a severity, or a kind of event."""
        if self.rank >= RANKS[Severity.WARNING]:
            return _KIND_OF_SEVERITY[self.entry.severity]
        return EVENT_KINDS.get(self.entry.event or "", _KIND_OF_SEVERITY[self.entry.severity])

    @property
    def source(self) -> tuple[str, str]:
        """Node and worker that wrote it."""
        return (self.entry.node_id, self.entry.worker_id)

    def lines(self, width: int, most: int) -> list[str]:
        """Return the text wrapped to a width, at most `most` lines with a mark at the end.

        Args:
            width: Cells of one line, at least 1.
            most: Lines that are returned at most.
        """
        found: list[str] = []
        for line in self._paragraphs():
            found.extend(wrap_cells(line, width))
            if len(found) > most:
                break
        if len(found) > most:
            found = found[:most]
            found[-1] = cut_cells(found[-1], width - 1) + "…"
        return found or [""]

    def _paragraphs(self) -> list[str]:
        if self.entry.payload is not None or "\n" not in self.entry.text[:PAINT_LIMIT]:
            return [self.text]
        head = self.entry.text[: PAINT_LIMIT * 4]
        lines = [one_line(line) for line in head.rstrip("\r\n").split("\n")[:MAX_LINES]]
        rest = len(self.entry.text) - len(head)
        return [*lines, f"… {rest:,} more characters"] if rest > 0 else lines


def entry_text(entry: LogEntry) -> str:
    """Return an entry as one harmless line."""
    if entry.payload is not None:
        described = describe_event(entry.payload)
        if described:
            return one_line(described)
        if not entry.text:
            return one_line(_as_json(entry))
    return one_line(entry.text)


def one_line(text: str) -> str:
    """Return a text as one harmless line: folded, bounded, and marked where something is left out.

    A progress bar that was drawn over itself with carriage returns shows its last state. Of
    several lines the first and the last are shown, for in a traceback these say the most.
    """
    if len(text) <= PAINT_LIMIT and text.isascii() and text.isprintable():
        return text
    body = text.rstrip("\r\n")
    first, newline, rest = body.partition("\n")
    if not newline:
        return _bounded(_last_state(body))
    between = rest.count("\n")
    last = rest[rest.rfind("\n") + 1 :]
    fold = f" … (+{between:,} lines) " if between else " ⏎ "
    half = PAINT_LIMIT // 2
    return _bounded(_last_state(first), half) + fold + _bounded(_last_state(last).lstrip(), half)


def _last_state(line: str) -> str:
    """Return what a line that was written over with carriage returns shows in the end."""
    line = line.rstrip("\r")
    return line[line.rfind("\r") + 1 :] if "\r" in line else line


def _bounded(text: str, limit: int = PAINT_LIMIT) -> str:
    if "\t" in text[: limit * 4]:
        text = text[: limit * 4].expandtabs(4) + text[limit * 4 :]
    rest = len(text) - limit
    if rest <= 0:
        return safe_text(text, limit)
    return f"{safe_text(text[:limit], limit)}…(+{rest:,} characters)"


def _as_json(entry: LogEntry) -> str:
    try:
        return json.dumps(entry.payload, ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):
        return "(a structured entry that can't be shown)"


def cut_cells(text: str, width: int) -> str:
    """Return as much of a text as fits into so many cells."""
    if len(text) <= width and text.isascii():
        return text
    if text.isascii():
        return text[: max(0, width)]
    return next(iter(chop_cells(text, width)), "") if width > 0 else ""


def wrap_cells(text: str, width: int) -> list[str]:
    """Return a text cut into lines of so many cells."""
    if cell_len(text) <= width:
        return [text]
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)]
    return chop_cells(text, width)
