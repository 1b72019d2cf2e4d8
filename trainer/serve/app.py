"""The HTTP side: TensorFlow Serving's REST API, probes and metrics, as an ASGI application."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainer.serve.bodies import answer
from trainer.serve.numbers import RequestError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from starlette.requests import Request

    from trainer.serve.host import ModelHost

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

_PREDICT = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict")
_JSON = (b"content-type", b"application/json")
_CLOSE = (b"connection", b"close")
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_DISCARD_TIMES = 8
"""How much of a body that is too large is read, in sizes of the limit, so that its sender hears."""
_DISCARD_S = 2.0
_MOST_TIMES = 16
"""How much of bodies is read at a time, in sizes of the limit, so that memory has an end."""


class Application:
    """Predictions go past the framework: its layers cost as much as a small model does."""

    def __init__(self, host: ModelHost, *, max_body_bytes: int, body_timeout_s: float) -> None:
        self._host = host
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s
        self._others = _make_others(host)
        self._being_read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["path"].endswith(":predict"):
            await self._predict(scope, receive, send)
        else:
            await self._others(scope, receive, send)

    async def _predict(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = self._host
        began = time.perf_counter()
        host.in_flight += 1
        status, extra = 200, []
        try:
            body = await self._body(scope, receive)
            servable = host.servable_for(*_target(scope))
            ask = servable.reader.read(body)
            content = answer(ask, await host.batcher.submit(ask))
        except RequestError as error:
            status, content = error.status, _error_body(str(error))
            extra = _headers_of(error)
        except Exception as error:  # noqa: BLE001 - a defect must be an answer, not a lost connection
            status, content = 500, _error_body(f"{type(error).__name__}: {error}")
            host.tell_defect(error)
        finally:
            host.in_flight -= 1
        if host.draining:
            extra.append(_CLOSE)
        host.meters.answered(status, time.perf_counter() - began)
        length = (b"content-length", b"%d" % len(content))
        await send(
            {"type": "http.response.start", "status": status, "headers": [_JSON, length, *extra]}
        )
        await send({"type": "http.response.body", "body": content})

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        encoding, declared = _headers(scope)
        limit = self._max_body_bytes
        if declared is not None and declared > limit:
            await _discard(receive, _DISCARD_TIMES * limit)
            raise _too_large(limit)
        message = await receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            body = await self._patiently(body, receive, limit if declared is None else declared)
        if len(body) > limit:
            raise _too_large(limit)
        if encoding in (b"", b"identity"):
            return body
        if encoding == b"gzip":
            return _unzipped(body, limit)
        raise RequestError(415, "content-encoding must be gzip or none")

    async def _patiently(self, first: bytes, receive: Receive, size: int) -> bytes:
        """Read a body that comes in pieces, within its time and what all may take together."""
        if self._being_read + size > _MOST_TIMES * self._max_body_bytes:
            raise RequestError(429, "too many large bodies are being read", 1, is_unread=True)
        self._being_read += size
        try:
            return await asyncio.wait_for(self._rest(first, receive), self._body_timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            text = "the body did not arrive in time"
            raise RequestError(408, text, is_unread=True) from None
        finally:
            self._being_read -= size

    async def _rest(self, first: bytes, receive: Receive) -> bytes:
        parts, size = [first], len(first)
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "the client went away")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_body_bytes:
                await _discard(receive, _DISCARD_TIMES * self._max_body_bytes)
                raise _too_large(self._max_body_bytes)
            if not message.get("more_body"):
                return b"".join(parts)


def _target(scope: Scope) -> tuple[str, int | None]:
    if scope["method"] != "POST":
        raise RequestError(405, "predictions are asked for by POST")
    match = _PREDICT.fullmatch(scope["path"])
    if match is None:
        raise RequestError(404, "no such path; predictions are at /v1/models/NAME:predict")
    return match[1], int(match[2]) if match[2] else None


def _headers(scope: Scope) -> tuple[bytes, int | None]:
    """Return the content's encoding, and its length as far as it is declared."""
    encoding, length = b"", None
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value)
        elif name == b"content-encoding":
            encoding = value.strip().lower()
    return encoding, length


def _headers_of(error: RequestError) -> list[tuple[bytes, bytes]]:
    headers = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    if error.is_unread:
        # What is left of the body would be taken for the next request.
        headers.append(_CLOSE)
    if error.status == 405:
        headers.append((b"allow", b"POST"))
    return headers


async def _discard(receive: Receive, most: int) -> None:
    """Read on for a while: a client that still writes would get a reset, not an answer."""

    async def read() -> None:
        left = most
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return

    try:
        await asyncio.wait_for(read(), timeout=_DISCARD_S)
    except (TimeoutError, asyncio.TimeoutError):
        return


def _too_large(limit: int) -> RequestError:
    text = f"the body is larger than {limit / 2**20:g} MB"
    return RequestError(413, text, is_unread=True)


def _unzipped(body: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        data = unpacker.decompress(body, limit + 1)
    except zlib.error as error:
        raise RequestError(400, f"the body is not gzip: {error}") from error
    if len(data) > limit:
        raise _too_large(limit)
    if not unpacker.eof:
        raise RequestError(400, "the body is cut off gzip")
    return data


def _error_body(text: str) -> bytes:
    import orjson

    return orjson.dumps({"error": text.encode("utf-8", "replace").decode()})


def _make_others(host: ModelHost) -> Starlette:
    """Return everything but predictions."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"} if host.alive else {"status": "dead"}, _ok(host.alive))

    async def readyz(_: Request) -> Response:
        state = host.state
        return JSONResponse({"status": state}, _ok(state == "ready"))

    async def metrics(_: Request) -> Response:
        host.refresh_gauges()
        return Response(host.meters.exposition(), headers={"content-type": _METRICS_TYPE})

    async def status(request: Request) -> Response:
        host.check_name(request.path_params["name"], _version_in(request))
        return JSONResponse(host.version_status())

    async def about(request: Request) -> Response:
        host.check_name(request.path_params["name"], _version_in(request))
        return JSONResponse(host.metadata())

    refused = _make_refused(host)
    model = "/v1/models/{name}"
    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route(model, status),
            Route(f"{model}/versions/{{version:int}}", status),
            Route(f"{model}/metadata", about),
            Route(f"{model}/versions/{{version:int}}/metadata", about),
        ],
        exception_handlers={HTTPException: refused, RequestError: refused},
    )


def _make_refused(host: ModelHost) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers for requests that fail, in the one shape that errors have."""

    async def refused(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 500
        text = str(error)
        headers: Any = getattr(error, "headers", None)
        if isinstance(error, RequestError):
            code = error.status
        elif isinstance(error, HTTPException):
            text = f"{error.detail}: {request.method} {request.url.path}"
        host.meters.counted(code)
        return JSONResponse({"error": text}, code, headers=headers)

    return refused


def _version_in(request: Request) -> int | None:
    version = request.path_params.get("version")
    return version if isinstance(version, int) else None


def _ok(good: bool) -> int:
    return 200 if good else 503
