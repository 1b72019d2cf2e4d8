"""Text from outside made harmless: no markup, no control sequence of it reaches the terminal.

Everything that a cloud, a label or a log said goes through `safe_text` once, and is then put into
`rich.text.Text` or `textual.content.Content` objects, never into a markup string.
"""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "�"
ELLIPSIS: Final = "…"
DEFAULT_LIMIT: Final = 2_000

# ECMA-48: CSI, then OSC/DCS/SOS/PM/APC up to their terminator, then any other two-byte escape.
ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]"
)
_BLANKS: Final = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]")
# Zero-width and variation characters, on whose width terminals do not agree.
_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff]")
# Other controls, marks that turn the direction of writing, lone surrogates, tag characters.
_HARMFUL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def safe_text(value: object, limit: int = DEFAULT_LIMIT) -> str:
    """Return one line of harmless text.

    Escape sequences and invisible characters are left out, line breaks and tabs become blanks,
    and whatever else could move the cursor or turn the direction of writing is shown as U+FFFD.

    Args:
        value: Anything; its `str` is taken.
        limit: The most characters that are returned; what is cut off ends in an ellipsis.
    """
    text = str(value)
    cut = len(text) > limit * 4
    if cut:
        text = text[: limit * 4]
    if not text.isascii() or not text.isprintable():
        text = ESCAPES.sub("", text)
        text = _BLANKS.sub(" ", text)
        text = _INVISIBLE.sub("", text)
        text = _HARMFUL.sub(REPLACEMENT, text)
    if cut or len(text) > limit:
        return text[: limit - 1] + ELLIPSIS
    return text


def safe_lines(value: object, limit: int = DEFAULT_LIMIT, most: int = 10_000) -> list[str]:
    """Return harmless text line by line, each line like `safe_text`, at most `most` of them."""
    lines = re.split(r"\r\n|[\n\r]", str(value))
    found = [safe_text(line.expandtabs(4), limit) for line in lines[:most]]
    if len(lines) > most:
        found.append(f"{ELLIPSIS} {len(lines) - most} more lines")
    return found


def safe_block(value: object, limit: int = DEFAULT_LIMIT) -> str:
    """Return harmless text that keeps its line breaks."""
    return "\n".join(safe_lines(value, limit))
