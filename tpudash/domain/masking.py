"""Masks addresses in whatever text they stand, for a screen that everybody can see."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"

# Bounded, so that a line of megabytes costs no more than its length.
_E_MAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}(?![\w:])"
)


def without_addresses(text: str) -> str:
    """Return a text in which e-mail and IP addresses are masked."""
    if "@" in text:
        text = _E_MAIL.sub(MASK, text)
    if "." in text:
        text = _IPV4.sub(MASK, text)
    if "::" in text or text.count(":") > 6:
        text = _IPV6.sub(MASK, text)
    return text
