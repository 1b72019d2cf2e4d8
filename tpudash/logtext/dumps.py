"""Which lines belong to one thing: a traceback, a stack trace, a dump of XLA.

A dump's first line stays to be seen and says how many lines follow; these are its members.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

MOST_MEMBERS: Final = 20_000
LONGEST_LAST: Final = 400
_TRACEBACK: Final = "Traceback (most recent call last):"
_AGAIN: Final = (
    "During handling of the above exception",
    "The above exception was the direct cause",
)
_DUMP_LINE: Final = re.compile(
    r"\s|$|[%}{)]|ENTRY |ROOT |HloModule |\d{1,4}\. Size:|={3,}|-{3,}"
    r"|(?:Size|Operator|Op|Shape|Unpadded size|Extra memory|XLA label|Allocation type)"
    r"|(?:Largest program|Total hbm usage|Program hbm requirement|Buffer assignment|allocation \d)"
)
_STACK_LINE: Final = re.compile(r"\s*@\s|PC: @|\s{2,}|\*\*\* ")
_BEGINS: Final = (
    "Traceback (most",
    "*** Begin stack trace",
    "*** SIG",
    "HloModule ",
    "Total hbm usage",
    "Largest program allocations",
    "  + Exception Group Traceback",
)
_FIRST: Final = frozenset(begin[0] for begin in _BEGINS)


class Fold(IntEnum):
    """What a line is to a dump; or that it says what another worker said too."""

    NONE = 0
    HEAD = 1
    MEMBER = 2
    SAME = 3


class _Kind(IntEnum):
    TRACEBACK = 1
    STACK = 2
    DUMP = 3


@dataclass(slots=True)
class Dump:
    """A dump that may go on.

    Attributes:
        head: The number of its first line.
    """

    head: int
    kind: _Kind
    count: int = 0
    is_closing: bool = False
    """A traceback's last line was there; what says that another follows may still come."""
    last: str = ""
    """What a traceback ends with: the exception and its message."""


class DumpFinder:
    """Reads the lines of one source, in their order, and says what belongs together."""

    __slots__ = ("dump",)

    def __init__(self) -> None:
        self.dump: Dump | None = None

    def take(self, number: int, text: str) -> Fold:
        """Say what a line is; `dump` is then the dump that it belongs to."""
        dump = self.dump
        if dump is not None:
            if dump.count < MOST_MEMBERS and self._goes_on(dump, text):
                dump.count += 1
                return Fold.MEMBER
            self.dump = None
        kind = _kind_of(text)
        if kind is None:
            return Fold.NONE
        self.dump = Dump(number, kind)
        return Fold.HEAD

    @staticmethod
    def _goes_on(dump: Dump, text: str) -> bool:
        if dump.kind is _Kind.DUMP:
            return _DUMP_LINE.match(text) is not None
        if dump.kind is _Kind.STACK:
            return _STACK_LINE.match(text) is not None
        if text.startswith(_AGAIN) or text.lstrip(" +|").startswith(_TRACEBACK):
            dump.is_closing = False
            return True
        if dump.is_closing:
            # Notes of an exception and the lines of a long message may follow, indented or not;
            # only what is indented or empty is sure to be part of it.
            return not text.strip() or text[0] in " \t|"
        if text and text[0] not in " \t|+":
            dump.is_closing = True
            dump.last = text[:LONGEST_LAST]
        return True


def may_begin(text: str) -> bool:
    """Whether a line may be the first of a dump; a quick look at its beginning."""
    return text[:1] in _FIRST and text.startswith(_BEGINS)


def _kind_of(text: str) -> _Kind | None:
    if not text.startswith(_BEGINS):
        return None
    if _TRACEBACK in text:
        return _Kind.TRACEBACK
    return _Kind.STACK if text[0] == "*" else _Kind.DUMP
