"""The gRPC face: turns service tables into handlers of one plaintext loopback server."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.rpc import code_pb2
from grpc_status import rpc_status

from tpudash.emulator.errors import ApiError, make_status
from tpudash.emulator.rpc import Call
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from tpudash.emulator.counters import CallCounters
    from tpudash.emulator.faults import Faults
    from tpudash.emulator.rpc import Method, Service

LOOPBACK = "127.0.0.1"
_MAX_REQUEST_BYTES = 16 * 1024 * 1024
_log = logging.getLogger(__name__)


class GrpcFace:
    """Binds services to a `grpc.aio` server."""

    def __init__(self, services: Iterable[Service], faults: Faults, counters: CallCounters) -> None:
        self._services = tuple(services)
        self._faults = faults
        self._counters = counters
        self._server: grpc.aio.Server | None = None

    async def start(self, port: int) -> int:
        """Serve on 127.0.0.1 and return the port.

        Raises:
            ConfigurationError: The port is taken or may not be used.
        """
        _probe(port)
        options = [
            ("grpc.so_reuseport", 0),  # else a second server would share the port in silence
            ("grpc.max_receive_message_length", _MAX_REQUEST_BYTES),
            ("grpc.max_send_message_length", -1),
        ]
        server = grpc.aio.server(options=options)
        for service in self._services:
            server.add_generic_rpc_handlers((self._handler(service),))
        try:
            bound = server.add_insecure_port(f"{LOOPBACK}:{port}")
        except RuntimeError as error:
            raise _port_error(port, str(error)) from error
        await server.start()
        self._server = server
        return int(bound)

    async def stop(self) -> None:
        """Stop answering; open streams are cut."""
        if self._server is not None:
            await self._server.stop(grace=0.2)

    def _handler(self, service: Service) -> grpc.GenericRpcHandler[Any, Any]:
        handlers = {}
        for method in service.methods:
            full_name = f"{service.name}/{method.name}"
            make = grpc.unary_unary_rpc_method_handler
            bind: Callable[..., Any] = self._unary
            if method.streaming:
                make, bind = grpc.stream_stream_rpc_method_handler, self._streaming
            handlers[method.name] = make(
                bind(full_name, method),
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
        return grpc.method_handlers_generic_handler(service.name, handlers)

    def _unary(self, full_name: str, method: Method) -> Callable[..., Any]:
        async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            self._counters.count(full_name, mutating=method.mutating)
            try:
                await self._faults.before(full_name, request)
                response = await method.function(request, _call(full_name, context))  # type: ignore[misc]
                self._faults.after(full_name, request)
            except Exception as error:  # noqa: BLE001  (the edge of a call: every fault is answered)
                status = _status_of(error, full_name)
            else:
                return response
            await _abort(context, status)
            return None

        return answer

    def _streaming(self, full_name: str, method: Method) -> Callable[..., Any]:
        async def answer(
            requests: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[Any]:
            self._counters.count(full_name, mutating=method.mutating)
            try:
                await self._faults.before(full_name, None)
                async for response in method.function(requests, _call(full_name, context)):  # type: ignore[union-attr]
                    yield response
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  (the edge of a call: every fault is answered)
                status = _status_of(error, full_name)
            else:
                return
            await _abort(context, status)

        return answer


def _probe(port: int) -> None:
    """Try the port first: the library's own complaint would go to stderr in its own words."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise _port_error(port, error.strerror or str(error)) from error


def _port_error(port: int, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"port {port} of {LOOPBACK} cannot be used",
        detail=reason,
        hint="choose another with --port, or --port 0 for any free one",
    )


async def _abort(context: Any, status: Any) -> None:
    await context.abort_with_status(rpc_status.to_status(status))


def _call(full_name: str, context: grpc.aio.ServicerContext[Any, Any]) -> Call:
    pairs = context.invocation_metadata() or ()
    return Call(full_name, {key.lower(): str(value) for key, value in pairs})


def _status_of(error: Exception, full_name: str) -> Any:
    if isinstance(error, ApiError):
        return error.status
    _log.error("defect while answering %s", full_name, exc_info=error)
    return make_status(code_pb2.INTERNAL, f"Internal error encountered in {full_name}.")
