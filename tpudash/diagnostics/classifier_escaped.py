"""JSON whose quotes and line breaks stand escaped in a text, as when a message is quoted again."""

from __future__ import annotations

import json
import re
from typing import Any, Final

MOST_LEVELS: Final = 3
MOST_CHARACTERS: Final = 8_000

_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_BREAK: Final = re.compile(r"\\([nrt])(?![a-z])")
_MEANING: Final = {"n": "\n", "r": "\r", "t": "\t"}


def decode_escaped(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins at a place, and where the text goes on after it.

    Raises:
        ValueError: There is none, however often the escapes are resolved.
    """
    decoder = json.JSONDecoder(strict=False)
    work = text[start : start + MOST_CHARACTERS]
    places = list(range(start, start + len(work)))
    for level in range(MOST_LEVELS + 1):
        # At first only the line breaks: quotes inside strings may be escaped as they should be.
        pattern = _ESCAPE if level else _BREAK
        resolved, came_from = _resolved(work, places, pattern)
        if level:
            work, places = resolved, came_from
        try:
            value, end = decoder.raw_decode(resolved)
        except ValueError:
            continue
        return value, came_from[end - 1] + 1
    msg = "no JSON value begins here"
    raise ValueError(msg)


def _resolved(text: str, places: list[int], pattern: re.Pattern[str]) -> tuple[str, list[int]]:
    """Return a text with one level of escapes resolved, and where each character came from."""
    parts: list[str] = []
    kept: list[int] = []
    start = 0
    for match in pattern.finditer(text):
        parts += (text[start : match.start()], _MEANING.get(match[1], match[1]))
        kept += places[start : match.start()]
        kept.append(places[match.start() + 1])
        start = match.end()
    parts.append(text[start:])
    kept += places[start:]
    return "".join(parts), kept
