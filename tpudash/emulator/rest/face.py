"""Serves the REST face of the Cloud TPU API on a loopback port."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web
from google.rpc import code_pb2

from tpudash.emulator.dispatch import status_of
from tpudash.emulator.errors import ApiError, ConnectionLostError, invalid_argument
from tpudash.emulator.rest.errors import error_body, error_headers, http_status
from tpudash.emulator.rest.rules import VERSIONS, HttpRule, rules_of
from tpudash.emulator.rest.transcode import json_of, numeric_enums, request_of
from tpudash.emulator.rpc import Call
from tpudash.emulator.web import WebSite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tpudash.clock import Clock
    from tpudash.emulator.dispatch import Dispatcher
    from tpudash.emulator.rpc import Method, Service

_JSON = "application/json"
_MAX_BODY = 16 * 1024 * 1024


class RestFace:
    """Turns HTTP requests into calls of the same tables that the gRPC face serves.

    Args:
        tables: By version of the API, a function that returns its services; called when the
            version is first asked for.
        dispatcher: Carries the calls out.
        clock: Time of the `Date` header.
    """

    def __init__(
        self,
        tables: Mapping[str, Callable[[], tuple[Service, ...]]],
        dispatcher: Dispatcher,
        clock: Clock,
    ) -> None:
        self._tables = tables
        self._dispatcher = dispatcher
        self._methods: dict[str, dict[str, tuple[str, Method]]] = {}
        self._site = WebSite(self._answer, clock, "--rest-port")

    async def start(self, port: int) -> int:
        """Serve on 127.0.0.1 and return the port.

        Raises:
            ConfigurationError: The port is taken or may not be used.
        """
        return await self._site.start(port)

    async def stop(self) -> None:
        """Stop serving; open calls are cut."""
        await self._site.stop()

    @property
    def handler(self) -> Callable[[web.BaseRequest], Any]:
        """The function that answers one request, for who receives requests otherwise."""
        return self._answer

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._call(request)
        except asyncio.CancelledError:
            raise
        except ConnectionLostError:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        except Exception as error:  # noqa: BLE001  (the edge of a call: every fault is answered)
            status = status_of(error, f"{request.method} {request.path}")
            return web.Response(
                status=http_status(status),
                text=json.dumps(error_body(status), indent=2),
                content_type=_JSON,
                headers=error_headers(status),
            )

    async def _call(self, request: web.BaseRequest) -> web.Response:
        version, rule, bound = self._route(request)
        found = self._methods_of(version).get(rule.rpc)
        if found is None:
            raise ApiError(code_pb2.UNIMPLEMENTED, f"{rule.rpc} is not implemented in {version}.")
        name, method = found
        query = list(request.query.items())
        message = request_of(rule, method.request, bound, query, await _body_of(request))
        headers = {key.lower(): value for key, value in request.headers.items()}
        call = Call(f"{name}/{rule.rpc}", headers, version)
        response = await self._dispatcher.unary(method, message, call)
        content = json_of(response, numeric=numeric_enums(query))
        if method.enrich is not None:
            method.enrich(content)
        return web.Response(text=json.dumps(content), content_type=_JSON)

    @staticmethod
    def _route(request: web.BaseRequest) -> tuple[str, HttpRule, dict[str, str]]:
        path = request.rel_url.raw_path
        version = path.split("/", 2)[1]
        verb = request.headers.get("X-HTTP-Method-Override", request.method).upper()
        if version in VERSIONS:
            for rule in rules_of(version):
                bound = rule.match(verb, path)
                if bound is not None:
                    return version, rule, bound
        raise ApiError(
            code_pb2.NOT_FOUND, f"The requested URL {path} was not found on this server."
        )

    def _methods_of(self, version: str) -> dict[str, tuple[str, Method]]:
        if version not in self._methods:
            self._methods[version] = {
                method.name: (service.name, method)
                for service in self._tables[version]()
                for method in service.methods
            }
        return self._methods[version]


async def _body_of(request: web.BaseRequest) -> bytes:
    """Return the body, which the metadata of a node can make large.

    Raises:
        ApiError: INVALID_ARGUMENT beyond the size that gRPC takes too.
    """
    parts = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > _MAX_BODY:
            raise invalid_argument("Request payload size exceeds the limit.")
        parts.append(chunk)
    return b"".join(parts)
