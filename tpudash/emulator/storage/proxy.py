"""A proxy for clients whose hosts are compiled in, such as TensorFlow's `gs://` file system.

They honour `https_proxy`: `CONNECT` to a host that the emulator stands in for ends here, TLS and
all; to other hosts of Google it is refused, so that a local run never touches the real cloud; to
the rest of the world it is a plain tunnel.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tpudash.emulator.ports import LOOPBACK
from tpudash.emulator.storage.one_request import OneRequest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

    Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_HEAD_LIMIT = 16 * 1024
_HEAD_S = 10.0
_CONNECT_S = 10.0
_CHUNK = 64 * 1024
_OURS = ".googleapis.com"
_log = logging.getLogger(__name__)


class TlsProxy:
    """Listens on a loopback port.

    Args:
        handlers: By host, who answers; a host that begins with a dot stands for all below it.
        context: Certificates of these hosts.
    """

    def __init__(self, handlers: Mapping[str, Handler], context: ssl.SSLContext) -> None:
        self._handlers = handlers
        self._context = context
        self._server: asyncio.Server | None = None
        self._web = web.Server(self._answer, access_log=None)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> int:
        """Listen and return the port."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, port, limit=_HEAD_LIMIT)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and cut what is open."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._web.shutdown(timeout=0.2)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        host = request.headers.get("Host", "").partition(":")[0].lower()
        handler = self._handler_of(host)
        if handler is None:
            return web.Response(status=421, text="this host is not served here\n")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        return await handler(request)

    def _handler_of(self, host: str) -> Handler | None:
        parent = "." + host.partition(".")[2]
        return self._handlers.get(host) or self._handlers.get(parent)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            writer.close()
        except Exception:  # noqa: BLE001  (the edge of a connection)
            _log.exception("defect in the proxy")
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            writer.close()
            return
        verb, _, rest = head.partition(b" ")
        host, _, port = rest.split(b" ", 1)[0].decode("latin-1").lower().rpartition(":")
        if verb != b"CONNECT" or not host or not port.isdecimal():
            await _refuse(writer, "405 Method Not Allowed")
        elif self._handler_of(host) is not None:
            await self._end_tls(writer)
        elif host.endswith(_OURS):
            await _refuse(writer, "403 Forbidden by the tpudash emulator")
        else:
            await _tunnel(reader, writer, host, int(port))

    async def _end_tls(self, writer: asyncio.StreamWriter) -> None:
        """Hand the connection to the web server, behind TLS."""
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        transport: Any = writer.transport
        opened = transport.get_extra_info("socket")
        with suppress(OSError):
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = OneRequest(self._web(), writer)
        loop = asyncio.get_running_loop()
        inner = await loop.start_tls(transport, protocol, self._context, server_side=True)
        if inner is not None:
            protocol.connection_made(inner)


async def _refuse(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    with suppress(OSError):
        await writer.drain()
    writer.close()


async def _tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
) -> None:
    try:
        async with asyncio.timeout(_CONNECT_S):
            far_reader, far_writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        await _refuse(writer, "502 Bad Gateway")
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, far_writer))
            group.create_task(_pump(far_reader, writer))
    finally:
        far_writer.close()
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
