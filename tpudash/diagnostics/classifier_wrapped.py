"""Texts that a terminal or a mail tore into lines of one width, put together again."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

MOST_LINES: Final = 40
LEAST_WIDTH: Final = 36
"""A narrower paragraph is a list or a table rather than a text that was wrapped."""

_BETWEEN: Final = re.compile(r"(\n(?:[ \t>|]*\n)+)")
_BEGINS: Final = re.compile(
    r"\s*(?:[-*•#$}\]{]|\d+[.)] |ERROR\b|WARN|INFO\b|DEBUG\b|FATAL\b|Traceback|File \""
    r"|\w+(?:Error|Exception|Warning)\b|[\w'\"-]+:(?:\s|$)|\d{4}-\d\d-\d\d|\d\d:\d\d|[IWEF]\d{4} )"
)
"""How a line begins that says something of its own."""
_SENTENCE_OVER: Final = re.compile(r"[.!?:;,]\s*$")
_GOES_ON: Final = re.compile(r"\s*[a-z0-9]")


def unwrapped(text: str) -> str:
    """Return a text in which every paragraph of evenly torn lines is one line."""
    return "".join(
        _joined(part) if place % 2 == 0 else part for place, part in enumerate(_BETWEEN.split(text))
    )


def _joined(paragraph: str) -> str:
    lines = paragraph.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    is_wrapped = 2 <= len(lines) <= MOST_LINES and _is_wrapped(lines)
    return " ".join(line.strip() for line in lines) if is_wrapped else paragraph


def _is_wrapped(lines: list[str]) -> bool:
    """Whether no line had room for the first word of the next, as whoever wraps leaves them."""
    # A link that is longer than the width stands on a line of its own.
    width = max((len(line.rstrip()) for line in lines if len(line.split()) > 1), default=0)
    if width < LEAST_WIDTH or any(_BEGINS.match(line) for line in lines[1:]):
        return False
    if len({len(line) - len(line.lstrip()) for line in lines[1:]}) > 1:
        return False
    if len(lines) == 2 and _SENTENCE_OVER.search(lines[0]) and not _GOES_ON.match(lines[1]):
        return False
    return all(
        len(line.rstrip()) + 1 + len(after.split(maxsplit=1)[0]) > width
        for line, after in pairwise(lines)
        if after.strip()
    )
