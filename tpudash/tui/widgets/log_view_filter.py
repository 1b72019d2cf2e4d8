"""What is typed to see some lines only: words, `!word`, `"a phrase"`, `key:value`, `/regex/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.log import Severity
from tpudash.tui.widgets.log_view_text import RANKS, LogRow

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS: Final = ("run", "node", "worker", "severity", "event", "stream", "attempt")
_TOKEN: Final = re.compile(
    r"""(?P<no>!?)(?:(?P<key>[a-z]+):)?(?:"(?P<phrase>[^"]*)"?|/(?P<regex>(?:[^/\\]|\\.)+)/|(?P<word>\S+))"""
)


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a filter; a line has to meet all of them."""

    test: Callable[[LogRow], bool]
    is_inverse: bool = False
    pattern: re.Pattern[str] | None = None
    """What is highlighted, if it is looked for in the text."""

    def accepts(self, row: LogRow) -> bool:
        """Whether a line meets it."""
        return self.test(row) != self.is_inverse


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A filter as it was typed, and its parts.

    Attributes:
        problem: What is wrong with it, such as a regular expression that is none; "" if nothing.
    """

    text: str = ""
    terms: tuple[Term, ...] = ()
    problem: str = ""

    def accepts(self, row: LogRow) -> bool:
        """Whether a line is to be shown."""
        return all(term.accepts(row) for term in self.terms)

    def matches_in(self, text: str) -> list[tuple[int, int]]:
        """Return the parts of a painted text that are to be highlighted, in order."""
        spans = [
            found.span()
            for term in self.terms
            if term.pattern is not None and not term.is_inverse
            for found in term.pattern.finditer(text)
            if found.end() > found.start()
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
    lowered = word.lower()
    return Term(
        lambda row: lowered in row.haystack,
        is_inverse,
        re.compile(re.escape(word), re.IGNORECASE),
    )


def _regex(text: str, *, is_inverse: bool) -> Term | str:
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error as error:
        return f"/{text}/ is no regular expression: {error}"
    # A pattern can take time beyond all measure on a long line, so it sees a painted line only.
    return Term(lambda row: pattern.search(row.text) is not None, is_inverse, pattern)


def _field(key: str, value: str, *, is_inverse: bool) -> Term | str | None:
    if not value:
        return None
    if key == "severity":
        return _severity(value, is_inverse=is_inverse)
    lowered = value.lower()
    tests: dict[str, Callable[[LogRow], bool]] = {
        "run": lambda row: lowered in (row.entry.run or "").lower(),
        "node": lambda row: lowered in row.entry.node_id.lower(),
        "worker": lambda row: lowered == row.entry.worker_id.lower(),
        "event": lambda row: (row.entry.event or "").lower().startswith(lowered),
        "stream": lambda row: row.entry.stream.lower().startswith(lowered),
        "attempt": lambda row: lowered == str(row.entry.attempt or ""),
    }
    return Term(tests[key], is_inverse)


def _severity(value: str, *, is_inverse: bool) -> Term | str:
    """Return a term for lines at least as severe as a severity whose name begins so."""
    name = value.upper()
    found = [severity for severity in Severity if severity.startswith(name)]
    if not found:
        return f"severity:{value} is none of {', '.join(str(one).lower() for one in Severity)}"
    rank = RANKS[found[0]]
    return Term(lambda row: row.rank >= rank, is_inverse)
