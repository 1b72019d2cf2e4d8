"""Masks addresses and accounts in whatever text they stand, for a screen that everybody can see."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MASK: Final = "***"
LEAST_NAME: Final = 3
"""Shorter names are words as well, and would be masked all over the place."""

# Bounded, so that a line of megabytes costs no more than its length.
_E_MAIL: Final = re.compile(r"[\w.+!#$%&'*/=?^`{|}~-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}")
_IPV4: Final = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9a-fA-F:]{3,39}(?:%\w{1,32})?(?![\w:])")


def without_addresses(text: str) -> str:
    """Return a text in which e-mail and IP addresses are masked."""
    if "@" in text:
        text = _E_MAIL.sub(MASK, text)
    if "." in text:
        text = _IPV4.sub(MASK, text)
    if "::" in text or text.count(":") > 6:
        text = _IPV6.sub(_if_address, text)
    return text


def _if_address(found: re.Match[str]) -> str:
    try:
        IPv6Address(found[0])
    except ValueError:
        return found[0]
    return MASK


def without_names(text: str, names: frozenset[str]) -> str:
    """Return a text in which names of accounts and machines are masked where they are words."""
    pattern = _pattern(names)
    return text if pattern is None else pattern.sub(MASK, text)


@lru_cache(maxsize=32)
def _pattern(names: frozenset[str]) -> re.Pattern[str] | None:
    known = sorted((name for name in names if len(name) >= LEAST_NAME), key=len, reverse=True)
    if not known:
        return None
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, known))})(?![\w-])")


def masked_in(value: Any, mask: Callable[[str], str]) -> Any:
    """Return JSON-like data in which every text, at any depth, went through `mask`."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(str(key)): masked_in(item, mask) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked_in(item, mask) for item in value]
    return value
