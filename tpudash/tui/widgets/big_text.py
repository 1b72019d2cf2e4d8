"""Figures three rows high, to be read across a room."""

from __future__ import annotations

from typing import Final

ROWS: Final = 3
_GLYPHS: Final = {
    "0": ("█▀█", "█ █", "▀▀▀"),
    "1": ("▀█ ", " █ ", "▀▀▀"),
    "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", " ▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"),
    "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"),
    "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"),
    ":": (" ", "▪", "▪"),
    ".": (" ", " ", "▄"),
    "$": ("▄█▀", "▀█▄", "▀█▀"),
    " ": (" ", " ", " "),
}
_PLAIN: Final = str.maketrans("█▀▄▪", "##_.")


def big(text: str, *, plain: bool = False) -> tuple[str, str, str]:
    """Return three rows for a text of figures; what has no large form stands in the middle.

    Args:
        text: Digits, `:`, `.`, `$`, blanks.
        plain: Draw with ASCII characters only.
    """
    cells = [_GLYPHS.get(character, (" ", character, " ")) for character in text]
    top, middle, bottom = (" ".join(cell[row] for cell in cells) for row in range(ROWS))
    if plain:
        return top.translate(_PLAIN), middle.translate(_PLAIN), bottom.translate(_PLAIN)
    return top, middle, bottom
