"""Finds the line of a key in a TOML text, for error messages only.

The standard library's parser does not say where a key stood, and a message without a line is of
little help in a long file. A key that can't be found this way (inline tables) is on line 1.
"""

from __future__ import annotations

import re

_TABLE = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*(?:\.\s*([\w-]+)\s*)?=")


def line_of(text: str, key: str) -> int:
    """Return the line, from 1, on which a dotted key (`intervals.nodes`) is set."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _TABLE.match(line):
            table = found[1].strip("\"'")
            if table == key:
                return number
        elif found := _KEY.match(line):
            name = next(part for part in found.groups()[:3] if part)
            dotted = ".".join(part for part in (table, name, found[4]) if part)
            if dotted == key:
                return number
    return 1
