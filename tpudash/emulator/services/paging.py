"""Pages of lists, bounded by number and by bytes."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from tpudash.emulator.errors import invalid_field

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PAGE_BYTES = 3_000_000
"""A page stays below the 4 MB that gRPC clients accept."""


def encode_token(position: Any) -> str:
    """Return a page token that holds a JSON value."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def decode_token(token: str) -> Any:
    """Return the value in a page token, or None without one.

    Raises:
        ApiError: INVALID_ARGUMENT when the token was not made here.
    """
    if not token:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, binascii.Error):
        raise invalid_field("page_token", "not a page token") from None


def take_page(
    items: Iterable[Any], page_size: int, page_token: str, *, default: int, maximum: int
) -> tuple[list[Any], str]:
    """Return one page of messages that have unique, ascending names, and the next token."""
    if page_size < 0:
        raise invalid_field("page_size", "must not be negative")
    limit = min(page_size or default, maximum)
    after = decode_token(page_token)
    page: list[Any] = []
    size = 0
    for item in items:
        if after is not None and item.name <= after:
            continue
        size += item.ByteSize()
        if len(page) >= limit or (page and size > MAX_PAGE_BYTES):
            return page, encode_token(page[-1].name)
        page.append(item)
    return page, ""
