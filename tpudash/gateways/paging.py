"""All pages of a list, each page with its own deadline and retries."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import ErrorClass, Failure, RetryPolicy
from tpudash.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from tpudash.gateways.pace import Spend
    from tpudash.gateways.retry import Caller

MOST_PAGES: Final = 2_000
MOST_BYTES: Final = 512 * 2**20
MOST_S: Final = 90.0
"""How long a whole list may take, however well each of its pages does."""


async def all_pages(
    caller: Caller,
    what: str,
    call: Callable[[str, float], Awaitable[Any]],
    *,
    timeout_s: float,
    spend: Spend | None = None,
) -> AsyncGenerator[Any, None]:
    """Yield the raw message of each page.

    `call` asks for the page of a token (the first is "") within a deadline in seconds, and returns
    the raw message, which has `next_page_token`.

    Raises:
        TpudashError: A page could not be had: a list that is not whole is never taken for one.
    """
    token = ""
    seen: set[str] = set()
    size = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + MOST_S
    while True:
        page = await caller.read(what, partial(call, token), timeout_s=timeout_s, spend=spend)
        size += page.ByteSize()
        yield page
        token = page.next_page_token
        if not token:
            return
        count = len(seen) + 1
        if token in seen or count > MOST_PAGES:
            raise _endless(what, f"the pages do not end: token {token[:40]!r} after {count} pages")
        if size > MOST_BYTES:
            raise _endless(what, f"the pages do not end: {size >> 20} MiB after {count} pages")
        if loop.time() > end:
            raise _endless(what, f"the pages do not end within {MOST_S:g} s: {count} came")
        seen.add(token)


def _endless(what: str, evidence: str) -> UnreachableError:
    return UnreachableError(
        f"no whole answer to {what}",
        detail=evidence,
        failure=Failure(
            ErrorClass.INTERNAL,
            evidence,
            "Try again; report it if it stays.",
            RetryPolicy.SAME_PLACE,
        ),
    )


async def raw_page(pager: Any) -> Any:
    """Return the raw message of the page that one of Google's pagers begins with."""
    pages = pager.pages
    try:
        page = await anext(pages)
    finally:
        await pages.aclose()
    return raw(page)


def raw(message: Any) -> Any:
    """Return the protobuf message inside a proto-plus wrapper, or the message itself."""
    pb = getattr(type(message), "pb", None)
    return pb(message) if pb is not None else message
