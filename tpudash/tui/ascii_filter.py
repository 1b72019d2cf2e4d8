"""The last thing between a screen and a terminal that shows ASCII only."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.filter import LineFilter

from tpudash.tui.looks import ALL_LOOKS

if TYPE_CHECKING:
    from textual.color import Color

_OTHERS: Final = {"…": "~", "▌": "|", "▐": "|", "█": "#", "≥": ">", "·": ".", "↻": "@", "⏎": "/"}
_PLAIN: Final = {look.glyph: look.plain_glyph for look in ALL_LOOKS} | _OTHERS


class AsciiFilter(LineFilter):
    """Gives every character that is not ASCII another in as many cells, whoever drew it.

    Widgets choose ASCII glyphs by themselves where they mean something; this takes what is left:
    ellipses and borders of Textual's own, glyphs in texts, and foreign text.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Return the segments in ASCII."""
        if all(segment.text.isascii() for segment in segments):
            return segments
        return [
            segment if segment.text.isascii() else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


@lru_cache(2_048)
def plain(text: str) -> str:
    """Return a text in ASCII that takes the same cells."""
    cells = cell_len(text)
    shown = (one if one.isascii() else _PLAIN.get(one, "?" * cell_len(one)) for one in text)
    return "".join(shown)[:cells].ljust(cells)
