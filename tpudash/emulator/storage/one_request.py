"""One request on one connection, in the dialect of libcurl as TensorFlow uses it.

It sends `Transfer-Encoding: identity`, or a length beside chunks, which RFC 9112 forbids and strict
parsers refuse; and it opens a connection for every request.
"""

from __future__ import annotations

import asyncio
import re

_LIMIT = 64 * 1024
_END = b"\r\n\r\n"
_UNWANTED = re.compile(
    rb"\r\n(?:transfer-encoding: *identity|connection:[^\r\n]*)(?=\r\n|$)", re.IGNORECASE
)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked(?=\r\n|$)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[^\r\n]*", re.IGNORECASE)


class OneRequest(asyncio.Protocol):
    """Mends the head of the first request and ends the connection after its answer.

    Args:
        inner: The protocol of a web server.
        writer: The stream over which the connection came; it would close what it stands for if it
            were collected as garbage before the end.
    """

    def __init__(self, inner: asyncio.Protocol, writer: asyncio.StreamWriter) -> None:
        self._inner = inner
        self._writer = writer
        self._head = b""
        self._connected = False
        self._passing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, with what may have come in the same breath as the end of the TLS handshake."""
        self._connected = True
        self._inner.connection_made(transport)
        if self._head:
            self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        """Hold bytes back until the head is whole; pass everything on from then."""
        if self._passing:
            self._inner.data_received(data)
            return
        self._head += data
        head, found, body = self._head.partition(_END)
        if not self._connected or (not found and len(self._head) < _LIMIT):
            return
        self._passing = True
        if found:
            head = _mended(head)
        self._head = b""
        self._inner.data_received(head + found + body)

    def eof_received(self) -> bool | None:
        """Pass the end on."""
        return None if not self._connected else self._inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Pass the loss on."""
        if self._connected:
            self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Pass on that the other side is slow."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the other side has caught up."""
        self._inner.resume_writing()


def _mended(head: bytes) -> bytes:
    """Return a head that strict parsers take, and that ends the connection."""
    head = _UNWANTED.sub(b"", head)
    if _CHUNKED.search(head):
        head = _LENGTH.sub(b"", head)
    return head + b"\r\nConnection: close"
