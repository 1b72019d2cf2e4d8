"""The gRPC face: turns service tables into handlers of one plaintext loopback server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from grpc_status import rpc_status

from tpudash.emulator.dispatch import status_of
from tpudash.emulator.ports import LOOPBACK, port_error, probe_port
from tpudash.emulator.rpc import Call, LazyService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from tpudash.emulator.dispatch import Dispatcher
    from tpudash.emulator.rpc import Method, Service

_MAX_REQUEST_BYTES = 16 * 1024 * 1024


class GrpcFace:
    """Binds services to a `grpc.aio` server."""

    def __init__(self, services: Iterable[Service | LazyService], dispatcher: Dispatcher) -> None:
        self._services = tuple(services)
        self._dispatcher = dispatcher
        self._server: grpc.aio.Server | None = None

    async def start(self, port: int) -> int:
        """Serve on 127.0.0.1 and return the port.

        Raises:
            ConfigurationError: The port is taken or may not be used.
        """
        probe_port(port, "--port")
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
            raise port_error(port, "--port", str(error)) from error
        await server.start()
        self._server = server
        return int(bound)

    async def stop(self) -> None:
        """Stop answering; open streams are cut."""
        if self._server is not None:
            await self._server.stop(grace=0.2)

    def _handler(self, service: Service | LazyService) -> grpc.GenericRpcHandler[Any, Any]:
        if isinstance(service, LazyService):
            return _LazyHandler(service, self._handler)
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
            try:
                return await self._dispatcher.unary(method, request, _call(full_name, context))
            except Exception as error:  # noqa: BLE001  (the edge of a call: every fault is answered)
                status = status_of(error, full_name)
            await _abort(context, status)
            return None

        return answer

    def _streaming(self, full_name: str, method: Method) -> Callable[..., Any]:
        async def answer(
            requests: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[Any]:
            self._dispatcher.counters.count(full_name, mutating=method.mutating)
            try:
                await self._dispatcher.faults.before(full_name, None)
                async for response in method.function(requests, _call(full_name, context)):  # type: ignore[union-attr]
                    yield response
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001  (the edge of a call: every fault is answered)
                status = status_of(error, full_name)
            else:
                return
            await _abort(context, status)

        return answer


class _LazyHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Builds the handler of a service at the first call to it."""

    def __init__(self, service: LazyService, build: Callable[[Service], Any]) -> None:
        self._service = service
        self._build = build
        self._handler: Any = None

    def service(self, handler_call_details: Any) -> Any:
        """Return the handler of a method, None if it is another service's."""
        if not handler_call_details.method.startswith(f"/{self._service.name}/"):
            return None
        if self._handler is None:
            self._handler = self._build(self._service.table())
        return self._handler.service(handler_call_details)


async def _abort(context: Any, status: Any) -> None:
    await context.abort_with_status(rpc_status.to_status(status))


def _call(full_name: str, context: grpc.aio.ServicerContext[Any, Any]) -> Call:
    pairs = context.invocation_metadata() or ()
    return Call(full_name, {key.lower(): str(value) for key, value in pairs})
