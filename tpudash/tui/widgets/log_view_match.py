"""Which rows of a block meet a filter: columns first, then bytes, and texts only of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.tui.widgets.log_view_text import LogRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.store.log_lines import LogBlock, LogLinesSource, LogSource
    from tpudash.tui.widgets.log_view_filter import LogFilter, Term

REGEX_ROWS: Final = 64


class Matcher:
    """A filter, ready to be asked about blocks of rows.

    Args:
        source: The log that the blocks are of.
        wanted: What rows have to meet.
        scope: Who must have written them, or None for anyone.

    Attributes:
        needles: What the bytes of a row that meets it must hold, in small letters.
    """

    def __init__(
        self,
        source: LogLinesSource,
        wanted: LogFilter,
        scope: Callable[[LogSource], bool] | None = None,
    ) -> None:
        self._source = source
        self._scope = scope
        terms = wanted.terms
        self._source_terms = [term for term in terms if term.source_test is not None]
        self._mark_terms = [term for term in terms if term.mark_test is not None]
        self._row_terms = [term for term in terms if term.row_test and not term.is_regex]
        self._regex_terms = [term for term in terms if term.is_regex]
        self.needles = [term.needle for term in terms if term.needle]
        self._marks = self._mark_table()
        self._known: dict[int, bool] = {}

    @property
    def is_trivial(self) -> bool:
        """Whether every row meets it."""
        return not (
            self._scope
            or self._source_terms
            or self._mark_terms
            or self._row_terms
            or self._regex_terms
        )

    def rows(self, block: LogBlock, start: int = 0) -> Sequence[int]:
        """Return the places of the rows that meet it, ascending."""
        places: Sequence[int] = range(start, len(block))
        if self.is_trivial:
            return places
        if self._mark_terms:
            marks, table = block.marks, self._marks
            places = [at for at in places if table[marks[at]]]
        places = self._of_wanted_sources(block, places)
        if places and self.needles:
            places = self._holding_needles(block, places)
        if places and (self._row_terms or self._regex_terms):
            places = self._of_texts(block, places)
        return places

    def of_scope(self, block: LogBlock) -> Sequence[int]:
        """Return the places of the rows that are of the scope, whatever they say."""
        if self._scope is None:
            return range(len(block))
        scope, sources = self._scope, self._source.sources
        is_in = {number: scope(sources[number]) for number in set(block.sources)}
        return [at for at, number in enumerate(block.sources) if is_in[number]]

    def _mark_table(self) -> list[bool]:
        terms = self._mark_terms
        return [
            all(term.mark_test is None or term.mark_test(mark) != term.is_inverse for term in terms)
            for mark in range(256)
        ]

    def _of_wanted_sources(self, block: LogBlock, places: Sequence[int]) -> Sequence[int]:
        if self._scope is None and not self._source_terms:
            return places
        known, numbers = self._known, block.sources
        for number in set(numbers) - known.keys():
            known[number] = self._is_wanted(self._source.sources[number])
        return [at for at in places if known[numbers[at]]]

    def _is_wanted(self, source: LogSource) -> bool:
        if self._scope is not None and not self._scope(source):
            return False
        return all(
            term.source_test is None or term.source_test(source) != term.is_inverse
            for term in self._source_terms
        )

    def _holding_needles(self, block: LogBlock, places: Sequence[int]) -> Sequence[int]:
        text = self._source.block_text(block)
        for needle in self.needles:
            found = text.rows_holding(needle)
            if isinstance(places, range):
                # Few rows hold it, and whether one is in a range is told at once.
                places = [at for at in sorted(found) if at in places]
            else:
                places = [at for at in places if at in found]
        return places

    def _of_texts(self, block: LogBlock, places: Sequence[int]) -> list[int]:
        found: list[int] = []
        for start in range(0, len(places), REGEX_ROWS):
            some = places[start : start + REGEX_ROWS]
            rows = [(at, LogRow(self._source.line(block, at))) for at in some]
            rows = [
                (at, row) for at, row in rows if all(term.accepts(row) for term in self._row_terms)
            ]
            for term in self._regex_terms:
                rows = _meeting(term, rows)
            found.extend(at for at, _ in rows)
        return found


def _meeting(term: Term, rows: list[tuple[int, LogRow]]) -> list[tuple[int, LogRow]]:
    pattern = term.pattern
    if pattern is None or not rows:
        return rows
    is_found = pattern.find_in([row.text for _, row in rows])
    return [pair for pair, found in zip(rows, is_found, strict=True) if found != term.is_inverse]
