"""Serves Cloud Storage: in plaintext for clients that have an endpoint, through TLS for others."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tpudash.emulator.errors import ApiError, ConnectionLostError
from tpudash.emulator.rest.errors import error_headers, http_status
from tpudash.emulator.storage.errors import StorageError
from tpudash.emulator.storage.json_api import Exchange, JsonApi, json_refusal
from tpudash.emulator.storage.uploads import Uploads
from tpudash.emulator.storage.xml_api import XmlApi, xml_refusal
from tpudash.emulator.web import WebSite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.clock import Clock
    from tpudash.emulator.dispatch import Dispatcher
    from tpudash.emulator.storage.store import BucketStore

SERVICE = "google.storage.v1"
"""First word of a method's name for faults and counters: `google.storage.v1/objects.get`."""

_JSON_PATHS = (
    "/storage/v1/",
    "/upload/storage/v1/",
    "/download/storage/v1/",
    "/resumable/upload/storage/v1/",
)
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_REASONS = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    429: "rateLimitExceeded",
    500: "internalError",
    503: "backendError",
}
_log = logging.getLogger(__name__)


class StorageFace:
    """Answers HTTP requests with the buckets of one emulator.

    Args:
        store: The buckets.
        dispatcher: Knows the faults in force and counts.
        clock: Time of the `Date` header.
    """

    def __init__(self, store: BucketStore, dispatcher: Dispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        uploads = Uploads(store)
        self._json = JsonApi(store, uploads)
        self._xml = XmlApi(store, uploads)
        self._site = WebSite(self.answer, clock, "--storage-port")

    async def start(self, port: int) -> int:
        """Serve in plaintext on 127.0.0.1 and return the port.

        Raises:
            ConfigurationError: The port is taken or may not be used.
        """
        return await self._site.start(port)

    async def stop(self) -> None:
        """Stop serving."""
        await self._site.stop()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path = request.raw_path.partition("?")[0]
        is_json = path.startswith(_JSON_PATHS)
        refuse = json_refusal if is_json else xml_refusal
        try:
            if is_json:
                return await self._answer_json(request, path)
            return await self._answer_xml(request, path)
        except asyncio.CancelledError:
            raise
        except ConnectionLostError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        except StorageError as error:
            return refuse(error)
        except ApiError as error:
            response = refuse(_of_status(error.status))
            response.headers.update(error_headers(error.status))
            return response
        except (ConnectionError, asyncio.IncompleteReadError):
            raise
        except Exception:  # noqa: BLE001  (the edge of a call: every fault is answered)
            _log.exception("defect while answering %s %s", request.method, path)
            return refuse(StorageError(500, "internalError", "Internal error encountered."))

    async def _answer_json(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        verb = request.headers.get("X-HTTP-Method-Override", request.method).upper()
        found = self._json.route(verb, path)
        if found is None:
            raise StorageError(404, "notFound", f"Not Found: {verb} {path}")
        route, parts = found
        call = Exchange(request, dict(request.query), parts)
        return await self._carried_out(route.name, verb, lambda: route.answer(call))

    async def _answer_xml(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        bucket, name = self._xml.target(request, path)
        if not bucket:
            raise StorageError(404, "notFound", "Not Found")
        method = self._xml.method_of(request.method, name)
        return await self._carried_out(
            method, request.method, lambda: self._xml.answer(request, bucket, name)
        )

    async def _carried_out(
        self, method: str, verb: str, work: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        name = f"{SERVICE}/{method}"
        faults = self._dispatcher.faults
        self._dispatcher.counters.count(name, mutating=False)
        await faults.before(name, None)
        response = await work()
        if verb in _CHANGING:
            faults.after(name, None)
        return response


def _of_status(status: Any) -> StorageError:
    code = http_status(status)
    return StorageError(code, _REASONS.get(code, "backendError"), status.message)
