"""What a log line looks like in words: one harmless line, bounded whatever it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, chop_cells

from tpudash.domain.log import Severity
from tpudash.logtext.clean import clean_text
from tpudash.logtext.dumps import Fold
from tpudash.logtext.events import EVENT_KINDS
from tpudash.store.log_lines import RANK_MASK, RANKS, FoldInfo, LogLine, LogSource, mark_of
from tpudash.store.log_record import line_of, micros_of, prepare

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry

PAINT_LIMIT: Final = 1_000
"""Characters of one line that are ever painted; the log keeps the whole text."""
SEARCH_LIMIT: Final = 64 * 1024
"""Characters of one line that a filter looks at."""
MAX_LINES: Final = 200

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
__all__ = ["MARKS", "RANKS", "LogRow", "cut_cells", "one_line", "row_of", "wrap_cells"]


class LogRow:
    """One line in a view, with what is painted of it.

    Attributes:
        line: The line as the log has it.
        is_context: Whether it is shown only because it stands beside one that was asked for.
        fold: What it stands for beside itself, or None.
    """

    __slots__ = ("_text", "fold", "is_context", "line")

    def __init__(
        self, line: LogLine, fold: FoldInfo | None = None, *, is_context: bool = False
    ) -> None:
        self.line = line
        self.fold = fold
        self.is_context = is_context
        self._text: str | None = None

    @property
    def number(self) -> int:
        """What the line is known by."""
        return self.line.number

    @property
    def entry(self) -> LogEntry:
        """The entry that it was made of."""
        return self.line.entry

    @property
    def text(self) -> str:
        """What is painted: one harmless line of bounded length."""
        if self._text is None:
            self._text = _folded(self.line.text, self.fold)
        return self._text

    @property
    def haystack(self) -> str:
        """What a filter searches, in lower case."""
        text = self.line.text
        if self.entry.payload is not None and self.entry.text != text:
            text = f"{text}\n{self.entry.text}"
        return text[:SEARCH_LIMIT].lower()

    @property
    def workers(self) -> int:
        """How many workers said it."""
        return 1 if self.fold is None else self.fold.workers

    @property
    def rank(self) -> int:
        """Place of its severity in the order of severities."""
        return self.line.mark & RANK_MASK

    @property
    def kind(self) -> str:
        """The theme's name for this kind of line: a severity, or a kind of event."""
        of_severity = _KIND_OF_SEVERITY[self.entry.severity]
        if self.rank >= RANKS[Severity.WARNING]:
            return of_severity
        return EVENT_KINDS.get(self.entry.event or "", of_severity)

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
        text = self.line.text
        if "\n" not in text:
            return [self.text]
        head = text[: PAINT_LIMIT * 4]
        lines = [one_line(line) for line in head.split("\n")[:MAX_LINES]]
        rest = len(text) - len(head)
        return [*lines, f"… {rest:,} more characters"] if rest > 0 else lines


def row_of(entry: LogEntry, number: int = 0) -> LogRow:
    """Return the row of an entry that is in no log."""
    data, _, rank, _ = prepare(entry)
    source = LogSource(
        0,
        entry.node_id,
        entry.zone,
        entry.worker_id,
        entry.run,
        entry.attempt,
        entry.stream,
    )
    mark = mark_of(rank, entry.event)
    return LogRow(line_of(data, number, micros_of(entry.timestamp), source, mark))


def one_line(text: str) -> str:
    """Return a text as one harmless line: folded, bounded, and marked where something is left out.

    A progress bar that was drawn over itself with carriage returns shows its last state. Of
    several lines the first and the last are shown, for in a traceback these say the most.
    """
    return _in_one(clean_text(text))


def _in_one(text: str) -> str:
    first, newline, rest = text.partition("\n")
    if not newline:
        return _bounded(text)
    between = rest.count("\n")
    last = rest[rest.rfind("\n") + 1 :]
    fold = f" … (+{between:,} lines) " if between else " ⏎ "
    half = PAINT_LIMIT // 2
    return _bounded(first, half) + fold + _bounded(last.lstrip(), half)


def _folded(text: str, fold: FoldInfo | None) -> str:
    line = _in_one(text)
    if fold is None or not fold.members:
        return line
    count = f"(+{fold.members:,} lines)"
    return f"{fold.last} {count} {line}" if fold.last else f"{line} {count}"


def _bounded(text: str, limit: int = PAINT_LIMIT) -> str:
    rest = len(text) - limit
    return text if rest <= 0 else f"{text[:limit]}…(+{rest:,} characters)"


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


def is_hidden_fold(fold: int) -> bool:
    """Whether a row is one that stands behind another."""
    return fold >= Fold.MEMBER
