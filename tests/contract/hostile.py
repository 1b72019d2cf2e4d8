"""Servers that do everything wrong that a server can do, on loopback ports of their own."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
SETTINGS_ACK = b"\x00\x00\x00\x04\x01\x00\x00\x00\x00"
GARBAGE = bytes(range(256)) * 16


async def garbage(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send bytes that are no protocol at all."""
    writer.write(GARBAGE)
    await writer.drain()


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close at once."""


async def web_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a web server that was never meant."""
    await reader.read(100)
    body = b"<html><body><h1>It works!</h1></body></html>"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Shake hands, and reset the connection as soon as something is asked."""
    writer.write(SETTINGS)
    await reader.read(64)
    await asyncio.wait_for(reader.read(4096), 5)
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def goes_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Shake hands, and send GOAWAY."""
    writer.write(SETTINGS + SETTINGS_ACK + b"\x00\x00\x08\x07\x00" + b"\x00" * 4 + b"\x00" * 8)
    await writer.drain()
    await reader.read(4096)


async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a valid beginning a byte at a time, for ever."""
    for byte in SETTINGS + SETTINGS_ACK + b"\x00\x40\x00\x00\x00\x00\x00\x00\x01" + bytes(4096):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Accept, read, and never say a word."""
    while await reader.read(4096):
        pass


async def half_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Shake hands and then never answer a question."""
    writer.write(SETTINGS + SETTINGS_ACK)
    await writer.drain()
    await silence(reader, writer)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def http2_page(status: bytes, content_type: bytes, body: bytes) -> Behaviour:
    """Return what speaks HTTP/2 well and answers each question with a page."""
    headers = status + _content_type(content_type)
    return http2(lambda stream: [_frame(1, 4, stream, headers), _frame(0, 1, stream, body)])


def _content_type(name: bytes) -> bytes:
    return b"\x0f\x10" + bytes([len(name)]) + name


def http2(answer: Callable[[int], Iterable[bytes]], pause_s: float = 0.0) -> Behaviour:
    """Return what speaks HTTP/2 well and answers each question on its stream with bytes.

    Args:
        answer: Gives the bytes to a stream, piece by piece.
        pause_s: Between two pieces.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SETTINGS)
        await reader.readexactly(24)  # the client's preface
        while True:
            head = await reader.readexactly(9)
            await reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == 4 and not flags & 1:
                writer.write(SETTINGS_ACK)
            elif kind == 6 and not flags & 1:
                writer.write(_frame(6, 1, 0, bytes(8)))
            elif kind == 1:
                for piece in answer(stream):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(pause_s)
            await writer.drain()

    async def until_gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except asyncio.IncompleteReadError:
            return

    return until_gone


OK = b"\x88"
NOT_FOUND = b"\x8d"
html = http2_page(OK, b"text/html", b"<html><h1>Sign in to the network</h1></html>")
missing = http2_page(NOT_FOUND, b"text/html", b"<html>404</html>")
no_grpc = http2_page(OK, b"application/grpc", b"\x00\x00\x00\x00\x05hello")
cut_short = http2_page(OK, b"application/grpc", b"\x00\x00\x00\xff\xff" + b"x" * 100)


def _slowly(stream: int) -> Iterable[bytes]:
    """Begin an answer of 1,000 bytes, and send it byte by byte."""
    yield _frame(1, 4, stream, OK + _content_type(b"application/grpc"))
    yield _frame(0, 0, stream, b"\x00\x00\x00\x03\xe8")
    for _ in range(1_000):
        yield _frame(0, 0, stream, b"x")


def _with_status(status: bytes) -> Callable[[int], Iterable[bytes]]:
    def answer(stream: int) -> Iterable[bytes]:
        headers = OK + _content_type(b"application/grpc")
        yield _frame(1, 5, stream, headers + b"\x00\x0bgrpc-status" + bytes([len(status)]) + status)

    return answer


slow_answer = http2(_slowly, pause_s=0.05)
stream_reset = http2(lambda stream: [_frame(3, 0, stream, (2).to_bytes(4, "big"))])
gone_away = http2(
    lambda _: [_frame(7, 0, 0, bytes(4) + (11).to_bytes(4, "big") + b"too_many_pings")]
)
strange_status = http2(_with_status(b"99"))
no_number = http2(_with_status(b"surely"))


@asynccontextmanager
async def hostile_server(behaviour: Behaviour) -> AsyncIterator[str]:
    """Serve one behaviour to each connection; yields HOST:PORT."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await behaviour(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            # Streams of asyncio complain aloud of a cancelled task; the server ends with the test.
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
