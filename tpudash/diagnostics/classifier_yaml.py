"""The details of an error as gcloud prints them: a YAML list right after the message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_BLOCKS: Final = 50
MOST_LINES: Final = 200

_BLOCK: Final = re.compile(
    r"^- '?@type'?: type\.googleapis\.com/google\.rpc\.\w+[^\n]*"
    rf"(?:\n(?:  |- )[^\n]*){{0,{MOST_LINES}}}",
    re.MULTILINE,
)
_FIELD: Final = re.compile(r"^( *)(?:- )?'?([\w.@-]{1,60})'?:(?: (.*))?$")


def with_details(text: str) -> Iterator[tuple[str, tuple[Mapping[str, Any], ...]]]:
    """Yield a text in pieces, each with the details that stand after it."""
    start = 0
    for count, block in enumerate(_BLOCK.finditer(text)):
        if count >= MOST_BLOCKS:
            break
        yield text[start : block.start()], tuple(_details(block[0]))
        start = block.end()
    yield text[start:], ()


def _details(block: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a block; of what is nested only the metadata, which names the place."""
    found: dict[str, Any] = {}
    inner: dict[str, str] | None = None
    for line in block.split("\n"):
        field = _FIELD.match(line)
        if field is None:
            continue
        indent, name, value = len(field[1]), field[2], (field[3] or "").strip().strip("'\"")
        if name == "@type":
            if found:
                yield found
            found, inner = {"@type": value}, None
        elif indent <= 2 and not value:
            inner = found.setdefault(name, {})
        elif indent <= 2:
            found[name], inner = value, None
        elif inner is not None:
            inner[name] = value
    if found:
        yield found
