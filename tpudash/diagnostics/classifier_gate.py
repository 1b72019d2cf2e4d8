"""What of a long log is worth a closer look: the lines that any row of the table could match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.classifier_codes import CODES, looks_like_error

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LINES: Final = 8_000
LAST_LINES: Final = 300
"""Lines at the end that are kept when they speak of an error, be it of no known kind."""

_ALWAYS: Final = (
    '"class"',
    '"event": "preempt"',
    '"event":"preempt"',
    "http error",
    *(code.lower() for code in CODES if "_" in code or code == "UNAUTHENTICATED"),
)


def worth_reading(text: str, needles: Iterable[str]) -> str:
    """Return the lines of a long text that hold one of the needles, and its last errors.

    Needles are in lower case and without line breaks.
    """
    lowered = text.lower()
    # A quotation mark may stand escaped in the text, so that its needle would not be found as is.
    wanted = [needle for needle in (*needles, *_ALWAYS) if needle in lowered or '"' in needle]
    lines = text.split("\n")
    kept = [line for line in lines if _holds(line.lower(), wanted)]
    if len(kept) > MOST_LINES:
        kept = kept[: MOST_LINES // 2] + kept[-MOST_LINES // 2 :]
    if not kept:
        kept = [line for line in lines[-LAST_LINES:] if looks_like_error(line)]
    return "\n".join(kept)


def _holds(lowered: str, needles: list[str]) -> bool:
    return any(needle in lowered for needle in needles)
