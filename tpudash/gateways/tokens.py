"""Access tokens for gRPC calls: renewed in threads, shared, and read anew when somebody signs in.

google-auth's own gRPC plug-in would renew them on the event loop, where one slow token endpoint
stops the whole screen. So each call asks here, and a renewal happens once for all who wait.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import grpc.aio

from tpudash.errors import TpudashError
from tpudash.gateways.credential_files import credential_files
from tpudash.gateways.credentials import SignIn, not_usable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

RENEWAL_S: Final = 20.0
"""How long one renewal may take, and one request of it."""

Headers = tuple[tuple[str, str], ...]


class Tokens:
    """Authorization headers for calls, by OAuth scopes.

    Args:
        find: Finds the credentials; it blocks, and is called in a thread.
    """

    def __init__(self, find: Callable[[], SignIn]) -> None:
        self._find = find
        self._sign_in: SignIn | None = None
        self._finding: asyncio.Task[SignIn] | None = None
        self._scoped: dict[tuple[str, ...], Any] = {}
        self._renewing: dict[tuple[str, ...], asyncio.Task[None]] = {}

    async def sign_in(self) -> SignIn:
        """Return the credentials; read anew once they were given up or their file has changed.

        Raises:
            NotAllowedError: There are no usable credentials.
        """
        if self._sign_in is not None and self._has_changed(self._sign_in):
            logger.info("the credentials' files have changed; they are read again")
            self.forget()
        if self._sign_in is None:
            if self._finding is None or self._finding.done():
                self._finding = asyncio.create_task(self._found(), name="find credentials")
            # Whoever stops waiting must not take the credentials away from the others.
            self._sign_in = await asyncio.shield(self._finding)
        return self._sign_in

    async def _found(self) -> SignIn:
        return await asyncio.to_thread(self._find)

    def _has_changed(self, sign_in: SignIn) -> bool:
        return sign_in.files is not None and sign_in.files != credential_files()

    def forget(self) -> None:
        """Have the next call read the credentials anew."""
        self._sign_in = None
        self._scoped = {}
        self._renewing = {}

    async def headers(self, scopes: tuple[str, ...]) -> Headers:
        """Return what a call must carry.

        Raises:
            NotAllowedError: The sign-in is over; the hint says which command renews it.
            UnreachableError: The token service does not answer.
        """
        sign_in = await self.sign_in()
        credentials = self._scoped.get(scopes)
        if credentials is None:
            credentials = self._scoped[scopes] = sign_in.scoped(scopes)
        if _needs_renewal(credentials):
            task = self._renewing.get(scopes)
            if task is None or task.done():
                task = asyncio.create_task(_renew(credentials, sign_in), name="renew a token")
                self._renewing[scopes] = task
            try:
                await asyncio.shield(task)
            except TpudashError:
                # Only a fresh look at the files can tell that somebody has signed in meanwhile.
                if self._scoped.get(scopes) is credentials:
                    self.forget()
                raise
        headers: dict[str, str] = {}
        credentials.apply(headers)
        return tuple((name.lower(), value) for name, value in headers.items())

    async def close(self) -> None:
        """Stop waiting for whatever is under way."""
        tasks = [task for task in (self._finding, *self._renewing.values()) if task is not None]
        self.forget()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _needs_renewal(credentials: Any) -> bool:
    """Whether a token is missing, over, or about to be."""
    from google.auth.credentials import AnonymousCredentials, TokenState

    if isinstance(credentials, AnonymousCredentials):
        return False
    return bool(credentials.token_state is not TokenState.FRESH)


async def _renew(credentials: Any, sign_in: SignIn) -> None:
    from google.auth.exceptions import GoogleAuthError

    try:
        async with asyncio.timeout(RENEWAL_S):
            await asyncio.to_thread(_refresh, credentials)
    except (GoogleAuthError, OSError, ValueError) as error:
        raise not_usable(error, sign_in) from error


def _refresh(credentials: Any) -> None:
    from google.auth.transport.requests import Request

    class InTime(Request):
        """Requests that end: google-auth's own may take two minutes."""

        def __call__(self, *arguments: Any, **more: Any) -> Any:
            more["timeout"] = min(more.get("timeout") or RENEWAL_S, RENEWAL_S)
            return super().__call__(*arguments, **more)  # type: ignore[no-untyped-call]

    credentials.refresh(InTime())


def token_interceptors(headers: Callable[[], Awaitable[Headers]]) -> list[Any]:
    """Return what a channel needs so that each of its calls carries a token."""
    return [_UnaryUnary(headers), _StreamStream(headers)]


class _WithHeaders:
    def __init__(self, headers: Callable[[], Awaitable[Headers]]) -> None:
        self._headers = headers

    async def _with_token(self, details: Any) -> Any:
        own = await self._headers()
        metadata = grpc.aio.Metadata(*(details.metadata or ()), *own)
        return grpc.aio.ClientCallDetails(
            details.method, details.timeout, metadata, details.credentials, details.wait_for_ready
        )


class _UnaryUnary(_WithHeaders, grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    async def intercept_unary_unary(
        self, continuation: Callable[[Any, Any], Any], details: Any, request: Any
    ) -> Any:
        return await continuation(await self._with_token(details), request)


class _StreamStream(_WithHeaders, grpc.aio.StreamStreamClientInterceptor):  # type: ignore[type-arg]
    async def intercept_stream_stream(
        self, continuation: Callable[[Any, Any], Any], details: Any, requests: Any
    ) -> Any:
        return await continuation(await self._with_token(details), requests)
