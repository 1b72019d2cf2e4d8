"""Bodies of requests: streams into content, and the parts of `multipart/related`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tpudash.emulator.storage.errors import StorageError, invalid

if TYPE_CHECKING:
    from aiohttp import web

    from tpudash.emulator.storage.content import Content

_CHUNK = 256 * 1024
_MAX_IN_MEMORY = 256 * 1024 * 1024
_BOUNDARY = re.compile(r"""boundary=["']?([^"';]+)["']?""")


async def stream_into(request: web.BaseRequest, content: Content) -> int:
    """Append the body, chunked or not, and return its size."""
    before = content.size
    async for chunk in request.content.iter_chunked(_CHUNK):
        content.write(chunk)
    return content.size - before


async def whole_body(request: web.BaseRequest) -> bytes:
    """Return the body.

    Raises:
        StorageError: 413 when it is too large to be held.
    """
    parts = []
    size = 0
    async for chunk in request.content.iter_chunked(_CHUNK):
        size += len(chunk)
        if size > _MAX_IN_MEMORY:
            raise StorageError(413, "uploadTooLarge", "Use a resumable upload for this much.")
        parts.append(chunk)
    return b"".join(parts)


async def json_body(request: web.BaseRequest) -> dict[str, Any]:
    """Return the body as a JSON object; an empty one without a body.

    Raises:
        StorageError: 400.
    """
    return parse_json(await whole_body(request))


def parse_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for no text.

    Raises:
        StorageError: 400.
    """
    if not body.strip():
        return {}
    try:
        content = json.loads(body)
    except ValueError as error:
        raise invalid(f"Parse Error: {error}") from None
    if not isinstance(content, dict):
        raise invalid("Parse Error: not an object")
    return content


def split_related(content_type: str, body: bytes) -> tuple[dict[str, Any], str, bytes]:
    """Return metadata, media type and data of a `multipart/related` upload.

    Raises:
        StorageError: 400 when it has not exactly these two parts.
    """
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise invalid("Missing boundary in the Content-Type of a multipart upload")
    marker = b"--" + found[1].encode()
    newline = b"\r\n" if body.startswith(marker + b"\r\n") else b"\n"  # gcloud sends the latter
    pieces = (newline + body).split(newline + marker)
    if len(pieces) != 4 or not pieces[3].startswith(b"--"):
        raise invalid("Bad multipart body: two parts are expected")
    _, metadata = _part(pieces[1], newline)
    media_type, data = _part(pieces[2], newline)
    return parse_json(metadata), media_type, data


def _part(piece: bytes, newline: bytes) -> tuple[str, bytes]:
    """Split a part into its media type and its content."""
    head, found, data = piece.partition(newline * 2)
    if not found:
        raise invalid("Bad multipart body: a part has no end of its headers")
    for line in head.split(newline):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.strip().decode("latin-1"), data
    return "", data
