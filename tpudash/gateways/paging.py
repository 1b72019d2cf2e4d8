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
EMPTY_PAGES: Final = 40
"""Pages in a row with nothing but a token to the next, after which a list is given up."""

MOST_BYTES: Final = 512 * 2**20
_AGAIN: Final = "Try again; report it if it stays."
MOST_S: Final = 30.0
"""How long a whole list may take, however well each of its pages does."""


async def all_pages(
    caller: Caller,
    what: str,
    call: Callable[[str, float], Awaitable[Any]],
    *,
    timeout_s: float,
    spend: Spend | None = None,
    most_s: float | None = None,
) -> AsyncGenerator[Any, None]:
    """Yield the raw message of each page.

    `call` asks for the page of a token (the first is "") within a deadline in seconds, and returns
    the raw message, which has `next_page_token`. All pages take `most_s` at most.

    Raises:
        TpudashError: A page could not be had: a list that is not whole is never taken for one.
    """
    token = ""
    patience = _Patience(MOST_S if most_s is None else most_s)
    while True:
        page = await caller.read(what, partial(call, token), timeout_s=timeout_s, spend=spend)
        yield page
        token = page.next_page_token
        if not token:
            return
        if evidence := patience.lost(page):
            raise _endless(what, f"the pages do not end: {evidence}")


class _Patience:
    """How long pages are asked for that lead to further pages."""

    def __init__(self, most_s: float) -> None:
        self._seen: set[str] = set()
        self._size = 0
        self._empty = 0
        self._most_s = most_s
        self._end = asyncio.get_running_loop().time() + most_s

    def lost(self, page: Any) -> str:
        """Take in one more page, and say why there should be no more of them, or ""."""
        token, size = page.next_page_token, page.ByteSize()
        self._size += size
        # A tag and a length are all that is there besides the token.
        self._empty = self._empty + 1 if size <= len(token.encode()) + 8 else 0
        is_known = token in self._seen
        self._seen.add(token)
        count = len(self._seen)
        if is_known:
            return f"token {token[:40]!r} came again after {count} pages"
        if count >= MOST_PAGES or self._size > MOST_BYTES:
            return f"{count} pages of {self._size >> 10} KiB came"
        if self._empty >= EMPTY_PAGES:
            return f"{self._empty} in a row were empty"
        if asyncio.get_running_loop().time() > self._end:
            return f"{count} came within {self._most_s:g} s"
        return ""


def _endless(what: str, evidence: str) -> UnreachableError:
    return UnreachableError(
        f"no whole answer to {what}",
        detail=evidence,
        hint=_AGAIN,
        failure=Failure(ErrorClass.INTERNAL, evidence, _AGAIN, RetryPolicy.SAME_PLACE),
    )


async def raw_page(pager: Any) -> Any:
    """Return the raw message of the page that one of Google's pagers begins with."""
    pages = pager.pages
    try:
        page = await anext(pages)
    finally:
        await pages.aclose()
    return raw(page)


async def readable(answer: Awaitable[Any]) -> Any:
    """Return an answer.

    Raises:
        DecodeError: It was no message of the kind; grpc hands out None in place of one.
    """
    found = await answer
    if found is None:
        raise unreadable()
    return found


def unreadable(why: str = "it is no message of this kind") -> Exception:
    """Return the error of an answer that is none."""
    from google.protobuf.message import DecodeError

    return DecodeError(why)


def raw(message: Any) -> Any:
    """Return the protobuf message inside a proto-plus wrapper, or the message itself.

    Raises:
        DecodeError: There is no message, because what came could not be read.
    """
    if message is None:
        raise unreadable()
    pb = getattr(type(message), "pb", None)
    return pb(message) if pb is not None else message
