"""A filter of words for rows: all must be there, and none of those that begin with `!`."""

from __future__ import annotations


def matches(text: str, haystack: str) -> bool:
    """Whether a row's words pass a filter as it was typed; the empty filter passes everything."""
    lowered = haystack.casefold()
    for part in text.casefold().split():
        is_inverse, word = part.startswith("!"), part.removeprefix("!")
        if word and (word in lowered) == is_inverse:
            return False
    return True
