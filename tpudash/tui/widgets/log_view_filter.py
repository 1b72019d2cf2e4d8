"""What is typed to see or find lines: words, `!word`, `"a phrase"`, `key:value`, `/regex/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import Severity
from tpudash.store.log_lines import RANK_MASK
from tpudash.tui.deadline import OverdueError, deadline
from tpudash.tui.widgets.log_view_text import RANKS, LogRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.store.log_lines import LogSource

KEYS: Final = ("run", "node", "worker", "severity", "event", "stream", "attempt")
REGEX_S: Final = 0.1
"""Processor time that a regular expression may take on a few lines before it is given up."""
_TOKEN: Final = re.compile(
    r"""(?P<no>!?)(?:(?P<key>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|/(?P<regex>(?:[^/\\]|\\.)+)/|(?P<word>\S+))"""
)
_PLAIN: Final = re.compile(r'[^!"/]*')


class SafePattern:
    """A regular expression of the user's that can't hold up the screen.

    It sees painted lines only, for a limited time, and finds nothing more once it was overdue.

    Attributes:
        problem: Why it was given up, or "".
    """

    def __init__(self, pattern: re.Pattern[str], *, is_literal: bool = False) -> None:
        self._pattern = pattern
        self._is_literal = is_literal
        self.problem = ""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where it is found in a text."""
        if self.problem:
            return []
        if self._is_literal:
            return [found.span() for found in self._pattern.finditer(text)]
        try:
            with deadline(REGEX_S):
                return [found.span() for found in self._pattern.finditer(text)]
        except OverdueError:
            self._give_up()
            return []

    def find_in(self, texts: Sequence[str]) -> list[bool]:
        """Return for each of some lines whether it is found there; give only a few at once."""
        if self.problem:
            return [False] * len(texts)
        search = self._pattern.search
        try:
            with deadline(REGEX_S):
                return [search(text) is not None for text in texts]
        except OverdueError:
            self._give_up()
            return [False] * len(texts)

    def _give_up(self) -> None:
        self.problem = f"/{self._pattern.pattern}/ takes too long and was given up"


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a filter; a line has to meet all of them.

    Attributes:
        row_test: Looks at a line with its text; None if another test says all.
        source_test: Looks at who wrote it only.
        mark_test: Looks at severity and kind of event only.
        needle: What a line's bytes in small letters hold if it may meet the term.
        pattern: What is highlighted.
    """

    is_inverse: bool = False
    row_test: Callable[[LogRow], bool] | None = None
    source_test: Callable[[LogSource], bool] | None = None
    mark_test: Callable[[int], bool] | None = None
    needle: bytes | None = None
    pattern: SafePattern | None = None
    is_of_worker: bool = False
    is_regex: bool = False

    def accepts(self, row: LogRow) -> bool:
        """Whether a line meets it."""
        if self.source_test is not None:
            found = self.source_test(row.line.source)
        elif self.mark_test is not None:
            found = self.mark_test(row.line.mark)
        else:
            found = self.row_test is None or self.row_test(row)
        return found != self.is_inverse


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A filter as it was typed, and its parts."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    fault: str = ""

    @property
    def problem(self) -> str:
        """What is wrong with it, such as a regular expression that is none; "" if nothing."""
        late = (term.pattern.problem for term in self.terms if term.pattern is not None)
        return self.fault or next((problem for problem in late if problem), "")

    @property
    def looks_at_text(self) -> bool:
        """Whether it asks for something in the text, and not only for who said it how."""
        return any(term.row_test is not None for term in self.terms)

    @property
    def is_of_worker(self) -> bool:
        """Whether it asks for some workers of several."""
        return any(term.is_of_worker for term in self.terms)

    def accepts(self, row: LogRow) -> bool:
        """Whether a line is to be shown."""
        return all(term.accepts(row) for term in self.terms)

    def matches_in(self, text: str) -> list[tuple[int, int]]:
        """Return the parts of a painted text that are to be highlighted, in order."""
        spans = [
            (start, end)
            for term in self.terms
            if term.pattern is not None and not term.is_inverse
            for start, end in term.pattern.spans(text)
            if end > start
        ]
        return sorted(spans)


def parse_filter(text: str) -> LogFilter:
    """Return what was typed as a filter; text that is half typed is a filter too."""
    terms: list[Term] = []
    problem = ""
    for found in _TOKEN.finditer(text.strip()):
        term = _term(found)
        if isinstance(term, str):
            problem = problem or term
        elif term is not None:
            terms.append(term)
    return LogFilter(text.strip(), tuple(terms), problem)


def parse_search(text: str) -> LogFilter:
    """Return what was typed as a search: plain words are one phrase, all else is a filter's."""
    plain = text.strip()
    has_key = any(f"{key}:" in plain for key in KEYS)
    if plain and not has_key and _PLAIN.fullmatch(plain):
        return LogFilter(plain, (_phrase(plain, is_inverse=False),))
    return parse_filter(text)


def _term(found: re.Match[str]) -> Term | str | None:
    """Return one term, what is wrong with it, or None for what means nothing (yet)."""
    is_inverse, key = bool(found["no"]), found["key"]
    if found["regex"] is not None and key is None:
        return _regex(found["regex"], is_inverse=is_inverse)
    value = next(
        part for part in (found["phrase"], found["word"], found["regex"]) if part is not None
    )
    if key in KEYS:
        return _field(key, value, is_inverse=is_inverse)
    word = f"{key}:{value}" if key else value
    is_half_typed = word == "!" or (word.removesuffix(":") in KEYS and word.endswith(":"))
    if not word or is_half_typed:
        return None
    return _phrase(word, is_inverse=is_inverse)


def _phrase(text: str, *, is_inverse: bool) -> Term:
    lowered = text.lower()
    return Term(
        is_inverse,
        row_test=lambda row: lowered in row.haystack,
        # Only letters of ASCII are made small in a block's bytes.
        needle=lowered.encode() if lowered.isascii() and not is_inverse else None,
        pattern=SafePattern(re.compile(re.escape(text), re.IGNORECASE), is_literal=True),
    )


def _regex(text: str, *, is_inverse: bool) -> Term | str:
    try:
        pattern = SafePattern(re.compile(text, re.IGNORECASE))
    except (re.error, OverflowError, RecursionError) as error:
        return f"/{text}/ is no regular expression: {error}"
    return Term(
        is_inverse,
        row_test=lambda row: pattern.find_in((row.text,))[0],
        is_regex=True,
        needle=None if is_inverse else _needle_of(text),
        pattern=pattern,
    )


def _needle_of(pattern: str) -> bytes | None:
    """Return a word that whatever a simple pattern matches must hold, or None."""
    if not pattern.isascii() or any(character in pattern for character in "|({?"):
        return None
    # Sets and escapes stand for one character each; what may be repeated may be missing.
    plain = re.sub(r"\[\^?\]?[^\]]*\]|\\.", ".", pattern)
    words = re.findall(r"[A-Za-z0-9_ ]{3,}", re.sub(r".[*+]", ".", plain))
    return max(words, key=len).lower().encode() if words else None


def _field(key: str, value: str, *, is_inverse: bool) -> Term | str | None:
    if not value:
        return None
    if key == "severity":
        return _severity(value, is_inverse=is_inverse)
    lowered = value.lower()
    if key == "event":
        return Term(
            is_inverse, row_test=lambda row: (row.entry.event or "").lower().startswith(lowered)
        )
    tests: dict[str, Callable[[LogSource], bool]] = {
        "run": lambda source: lowered in (source.run or "").lower(),
        "node": lambda source: lowered in source.node_id.lower(),
        "worker": lambda source: lowered == source.worker_id.lower(),
        "stream": lambda source: source.stream.lower().startswith(lowered),
        "attempt": lambda source: lowered == str(source.attempt or ""),
    }
    return Term(is_inverse, source_test=tests[key], is_of_worker=key in {"worker", "node"})


def _severity(value: str, *, is_inverse: bool) -> Term | str:
    """Return a term for lines at least as severe as a severity whose name begins so."""
    name = value.upper()
    found = [severity for severity in Severity if severity.startswith(name)]
    if not found:
        return f"severity:{value} is none of {', '.join(str(one).lower() for one in Severity)}"
    rank = RANKS[found[0]]
    return Term(is_inverse, mark_test=lambda mark: mark & RANK_MASK >= rank)
