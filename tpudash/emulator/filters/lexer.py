"""Splits a filter into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

_SPACE = re.compile(r"(?:\s|--[^\n]*)+")
_OPERATOR = re.compile(r"=~|!~|!=|<=|>=|=|<|>|:")
_SEGMENT = re.compile(r"""[^\s()=!<>:,"'~.]+""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


class FilterError(ValueError):
    """A filter that cannot be read; the text says where and why."""


class Kind(Enum):
    """What a token is."""

    TERM = auto()
    """A path or a value: segments joined by dots, each bare or quoted."""

    OPERATOR = auto()
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token and where it stands."""

    kind: Kind
    text: str
    position: int
    segments: tuple[str, ...] = ()
    quoted: bool = False
    """Whether the whole term is one quoted string."""


_SINGLE = {"(": Kind.OPEN, ")": Kind.CLOSE, ",": Kind.COMMA}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a filter, an END token last.

    Raises:
        FilterError: A string is not closed or a character has no meaning.
    """
    tokens: list[Token] = []
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position >= len(text):
            tokens.append(Token(Kind.END, "", position))
            return tokens
        kind = _SINGLE.get(text[position])
        operator = _OPERATOR.match(text, position)
        if kind is not None:
            tokens.append(Token(kind, text[position], position))
            position += 1
        elif operator:
            tokens.append(Token(Kind.OPERATOR, operator[0], position))
            position = operator.end()
        else:
            token, position = _term(text, position)
            tokens.append(token)


def _term(text: str, start: int) -> tuple[Token, int]:
    segments: list[str] = []
    quoted = False
    position = start
    while True:
        if position < len(text) and text[position] in "\"'":
            segment, position = _string(text, position)
            quoted = not segments
        elif match := _SEGMENT.match(text, position):
            segment, position = match[0], match.end()
            quoted = False
        elif segments and position > start and text[position - 1] == ".":
            segment = ""
        else:
            raise FilterError(f'unexpected "{text[position]}" at position {position + 1}')
        segments.append(segment)
        if position >= len(text) or text[position] != ".":
            break
        position += 1
        quoted = False
    raw = text[start:position]
    is_string = quoted and len(segments) == 1
    shown = segments[0] if is_string else raw
    return Token(Kind.TERM, shown, start, tuple(segments), is_string), position


def _string(text: str, start: int) -> tuple[str, int]:
    quote = text[start]
    out: list[str] = []
    position = start + 1
    while position < len(text):
        char = text[position]
        if char == quote:
            return "".join(out), position + 1
        if char == "\\" and position + 1 < len(text):
            escaped = text[position + 1]
            out.append(_ESCAPES.get(escaped, "\\" + escaped))
            position += 2
            continue
        out.append(char)
        position += 1
    raise FilterError(f"the string that begins at position {start + 1} is not closed")
