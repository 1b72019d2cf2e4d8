"""Cloud Logging's two calls, whose answers are read entry by entry where they can't be as a whole.

One entry that is nested deeper than protobuf reads would otherwise hide all those beside it, as
often as it is asked for. Source: google/logging/v2/logging.proto.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from google.cloud.logging_v2 import types
from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

logger = logging.getLogger(__name__)

UNREADABLE: Final = "(what this entry says can't be read: it is nested too deep)"

_SERVICE: Final = "/google.logging.v2.LoggingServiceV2"
_ENTRIES: Final = 1
_PAYLOADS: Final = frozenset({2, 3, 6})
"""Field numbers of LogEntry.payload."""

_ENTRY: Final = type(types.LogEntry.pb(types.LogEntry()))
_LIST: Final = type(types.ListLogEntriesResponse.pb(types.ListLogEntriesResponse()))
_TAIL: Final = type(types.TailLogEntriesResponse.pb(types.TailLogEntriesResponse()))


async def list_page(channel: Any, request: dict[str, Any], timeout_s: float) -> Any:
    """Return one page as a raw ListLogEntriesResponse, or None if it is none."""
    ask = channel.unary_unary(
        f"{_SERVICE}/ListLogEntries",
        request_serializer=types.ListLogEntriesRequest.serialize,
        response_deserializer=lambda data: salvaged(_LIST, data),
    )
    return await ask(types.ListLogEntriesRequest(request), timeout=timeout_s)


async def open_tail(channel: Any, requests: AsyncIterator[Any], timeout_s: float) -> Any:
    """Open a tail; its `read` gives raw TailLogEntriesResponse messages."""
    ask = channel.stream_stream(
        f"{_SERVICE}/TailLogEntries",
        request_serializer=types.TailLogEntriesRequest.serialize,
        response_deserializer=lambda data: salvaged(_TAIL, data),
    )
    call = ask(requests, timeout=timeout_s)
    await call.wait_for_connection()
    return call


def salvaged(kind: Any, data: bytes) -> Any:
    """Return a response, with what can be read of each of its entries.

    Raises:
        DecodeError: It is no message at all.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        first_fault = error
    answer = kind()
    rest: list[bytes] = []
    for number, whole, content in _fields(data):
        if number != _ENTRIES:
            rest.append(whole)
            continue
        entry = _entry_of(content)
        if entry is None:
            raise first_fault
        answer.entries.append(entry)
    answer.MergeFromString(b"".join(rest))
    return answer


def _entry_of(data: bytes) -> Any:
    """Return an entry, without its payload if that is what can't be read; None if all of it is."""
    try:
        return _ENTRY.FromString(data)
    except DecodeError:
        logger.debug("a log entry can't be read as a whole")
    kept = [whole for number, whole, _ in _fields(data) if number not in _PAYLOADS]
    if not kept:
        return None
    try:
        entry = _ENTRY.FromString(b"".join(kept))
    except DecodeError:
        return None
    entry.text_payload = UNREADABLE
    return entry


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield number, whole bytes and content of each field on the top level of a message.

    Source: https://protobuf.dev/programming-guides/encoding/

    Raises:
        DecodeError: The bytes are no message.
    """
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        kind = tag & 7
        begin = at
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, begin = _varint(data, at)
            at = begin + size
        elif kind in {1, 5}:
            at += 8 if kind == 1 else 4
        else:
            raise DecodeError(f"no field begins with {tag}")
        if at > len(data):
            raise DecodeError("it ends within a field")
        yield tag >> 3, data[start:at], data[begin:at]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise DecodeError("it ends within a number")
