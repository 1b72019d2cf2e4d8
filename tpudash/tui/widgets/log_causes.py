"""Causes of failures, named at the lines that tell of them; the earliest specific one is root."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

from tpudash.domain.failure import ErrorClass
from tpudash.store.log_lines import RANK_MASK, RANKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tpudash.store.log_lines import LogBlock, LogLine, LogLinesSource
    from tpudash.tui.widgets.log_view_model import LogLines, Spot

SLICE_S: Final = 0.008
LONGEST_BLOCK_S: Final = 0.2
"""How long the errors of one block are judged while a cause is looked for."""
MOST_WAITING: Final = 4_000
MOST_KNOWN: Final = 2_000
MOST_CAUSES: Final = 5_000
_JUDGED_CHARACTERS: Final = 4_000
_ERROR: Final = next(rank for severity, rank in RANKS.items() if severity == "ERROR")
_NUMBERS: Final = re.compile(r"\d+")
GENERIC: Final = frozenset(
    {
        ErrorClass.INTERNAL,
        ErrorClass.CONNECT,
        ErrorClass.UNKNOWN_OUTCOME,
        ErrorClass.RATE_LIMIT,
        ErrorClass.STALLED,
    }
)
"""What other workers say once one of them has failed: a consequence more often than a cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A line that names a failure.

    Attributes:
        number: The line's number in the log.
        micros: Its time, in microseconds since the epoch.
        group: Run (or node) and attempt.
        advice: What to do about it.
    """

    number: int
    micros: int
    error_class: ErrorClass
    group: tuple[str, int | None]
    node_id: str
    worker_id: str
    advice: str = ""

    @property
    def rank(self) -> tuple[bool, int]:
        """Order in which causes are believed: specific ones first, then the earliest."""
        return (self.error_class in GENERIC, self.micros)


class CauseBook:
    """Judges lines of errors as they arrive, a little at a time.

    Attributes:
        tags: What to write before lines, by number.
    """

    def __init__(self, source: LogLinesSource) -> None:
        self._source = source
        self._seen: dict[int, tuple[int, int]] = {}
        self._judged: set[int] = set()
        self._waiting: deque[tuple[LogBlock, int]] = deque()
        self._known: OrderedDict[str, tuple[ErrorClass, str] | None] = OrderedDict()
        self._causes: dict[int, Cause] = {}
        self._roots: dict[tuple[str, int | None], Cause] = {}
        self.tags: dict[int, str] = {}

    @property
    def is_busy(self) -> bool:
        """Whether lines wait to be judged; `sync` goes on."""
        return bool(self._waiting)

    def sync(self) -> bool:
        """Look at what is new, for a short while; returns whether anything was found."""
        self._collect()
        return self._judge_waiting(perf_counter() + SLICE_S)

    def _judge_waiting(self, end: float) -> bool:
        found = False
        while self._waiting and perf_counter() < end:
            block, number = self._waiting.popleft()
            self._source.load(block)
            at = block.index_of(number)
            if at is not None:
                found = self._judge(self._source.line(block, at)) or found
        return found

    def roots(self, groups: Iterable[tuple[str, int | None]] | None = None) -> list[Cause]:
        """Return the root of each failed attempt, the newest attempt first."""
        wanted = None if groups is None else set(groups)
        found = [root for group, root in self._roots.items() if wanted is None or group in wanted]
        return sorted(found, key=lambda root: (root.group[1] or 0, root.micros), reverse=True)

    def root_of(self, group: tuple[str, int | None]) -> Cause | None:
        """Return the root of one attempt, or None."""
        return self._roots.get(group)

    def search_back(self, lines: LogLines) -> Iterator[Spot | None]:
        """Look for a cause in what was not read yet, the newest first.

        Yields:
            None after each block without one, and at last the place of the root, if any.
        """
        for part in reversed(lines.parts):
            if part.block.is_ready:
                continue
            self._source.load(part.block)
            self._note_errors(part.block, 0)
            self._judge_waiting(perf_counter() + LONGEST_BLOCK_S)
            root = next(iter(self.roots()), None)
            if root is not None:
                yield lines.spot_of(root.number, root.micros)
                return
            yield None

    def _collect(self) -> None:
        """Note the lines of errors in blocks that have changed."""
        seen: dict[int, tuple[int, int]] = {}
        for block in self._source.blocks:
            key, now = id(block), (block.version, len(block))
            before = self._seen.get(key)
            seen[key] = now
            if before == now or not block.is_ready:
                continue
            start = before[1] if before is not None and before[0] == block.version else 0
            self._note_errors(block, start)
        self._seen = seen

    def _note_errors(self, block: LogBlock, start: int) -> None:
        marks, numbers = block.marks, block.numbers
        for at in range(start, len(block)):
            if marks[at] & RANK_MASK >= _ERROR and numbers[at] not in self._judged:
                self._note(block, numbers[at])

    def _note(self, block: LogBlock, number: int) -> None:
        if len(self._waiting) >= MOST_WAITING:
            return
        if len(self._judged) > 10 * MOST_WAITING:
            self._judged.clear()
        self._judged.add(number)
        self._waiting.append((block, number))

    def _judge(self, line: LogLine) -> bool:
        fold = self._source.fold_of(line.number)
        text = line.text[:_JUDGED_CHARACTERS]
        if fold is not None and fold.last:
            text = f"{fold.last}\n{text}"
        verdict = self._verdict(text)
        if verdict is None:
            return False
        source = line.source
        group = (source.run or source.node_id, source.attempt)
        cause = Cause(
            line.number,
            line.micros,
            verdict[0],
            group,
            source.node_id,
            source.worker_id,
            verdict[1],
        )
        self._take(cause)
        return True

    def _take(self, cause: Cause) -> None:
        if len(self._causes) >= MOST_CAUSES:
            oldest = next(iter(self._causes))
            del self._causes[oldest]
            self.tags.pop(oldest, None)
        self._causes[cause.number] = cause
        self.tags[cause.number] = str(cause.error_class)
        root = self._roots.get(cause.group)
        if root is not None and root.rank <= cause.rank:
            return
        if root is not None and root.number in self._causes:
            self.tags[root.number] = str(root.error_class)
        self._roots[cause.group] = cause
        self.tags[cause.number] = f"cause: {cause.error_class}"

    def _verdict(self, text: str) -> tuple[ErrorClass, str] | None:
        """Classify a text; texts that differ in numbers only are the same."""
        key = _NUMBERS.sub("#", text[:400])
        if key in self._known:
            return self._known[key]
        from tpudash.diagnostics.classifier import classify_text

        found = (
            (failure.error_class, failure.advice)
            for failure in classify_text(text)
            if failure.error_class is not ErrorClass.UNCLASSIFIED
        )
        verdict = next(found, None)
        self._known[key] = verdict
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return verdict
