"""Lists of objects: prefix, delimiter and pages.

https://cloud.google.com/storage/docs/json_api/v1/objects/list.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpudash.emulator.storage.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.emulator.storage.objects import StoredObject
    from tpudash.emulator.storage.store import BucketStore

_MAX_RESULTS = 1_000


@dataclass(slots=True)
class Page:
    """One page of a list."""

    items: list[StoredObject] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    next_token: str = ""


def list_page(store: BucketStore, bucket: str, query: Mapping[str, str]) -> Page:
    """Return a page; what lies below a delimiter is one prefix.

    Raises:
        StorageError: 404 for the bucket, 400 for a query that makes no sense.
    """
    store.bucket(bucket)
    limit = _limit(query.get("maxResults") or query.get("max-keys") or str(_MAX_RESULTS))
    prefix = query.get("prefix", "").encode()
    delimiter = query.get("delimiter", "").encode()
    start = max(prefix, query.get("startOffset", "").encode())
    end = query.get("endOffset", "").encode()
    if query.get("pageToken"):
        start = max(start, _decode(query["pageToken"]))
    page = Page()
    keeps_folders = query.get("includeTrailingDelimiter", "").lower() == "true"
    while True:
        seek = None
        for item in store.scan(bucket, start):
            name = item.name.encode()
            if not name.startswith(prefix) or (end and name >= end):
                return page
            if len(page.items) + len(page.prefixes) >= limit:
                page.next_token = base64.urlsafe_b64encode(name).decode()
                return page
            rest, found, _ = name[len(prefix) :].partition(delimiter or b"\0\0")
            if not found:
                page.items.append(item)
                continue
            folder = prefix + rest + found
            page.prefixes.append(folder.decode())
            if keeps_folders and name == folder:
                page.items.append(item)
            seek = after_prefix(folder)
            break
        if seek is None:
            return page
        start = seek


def after_prefix(prefix: bytes) -> bytes:
    """Return the first name that is greater than all that begin with a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise invalid(f"Invalid value for maxResults: '{text}'")
    return min(int(text) or _MAX_RESULTS, _MAX_RESULTS)


def _decode(token: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(token.encode())
    except (binascii.Error, ValueError):
        raise invalid("Invalid page token") from None
