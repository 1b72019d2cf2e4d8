"""Content on its way out: whole or in part."""

from __future__ import annotations

import re
from datetime import datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING

from aiohttp import web

from tpudash.emulator.storage.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.emulator.storage.objects import StoredObject

_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


async def send(request: web.BaseRequest, item: StoredObject, path: Path) -> web.StreamResponse:
    """Answer with an object's content, or the part that `Range` asks for.

    Raises:
        StorageError: 416 when no byte of the range exists.
    """
    headers = object_headers(item)
    first, last, status = 0, item.size - 1, 200
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is not None and (found[1] or found[2]):
        first, last = _bounds(item.size, found[1], found[2])
        if first > last:
            text = "The requested range cannot be satisfied."
            raise StorageError(416, "requestedRangeNotSatisfiable", text)
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{item.size}"
    length = last - first + 1
    headers["Content-Length"] = str(length)
    response = web.StreamResponse(status=status, headers=headers)
    with path.open("rb") as file:  # opened before anything is sent: it may be replaced meanwhile
        await response.prepare(request)
        if request.method != "HEAD":
            file.seek(first)
            while length > 0 and (data := file.read(min(_CHUNK, length))):
                await response.write(data)
                length -= len(data)
    await response.write_eof()
    return response


def _bounds(size: int, first: str, last: str) -> tuple[int, int]:
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


def object_headers(item: StoredObject) -> dict[str, str]:
    """Return the headers that describe an object."""
    modified = datetime.fromisoformat(item.updated)
    hashes = f"crc32c={item.crc32c}" + (f",md5={item.md5}" if item.md5 else "")
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Type": str(item.extra.get("contentType") or "application/octet-stream"),
        "ETag": f'"{item.etag}"',
        "Last-Modified": format_datetime(modified, usegmt=True),
        "X-Goog-Generation": str(item.generation),
        "X-Goog-Hash": hashes,
        "X-Goog-Metageneration": str(item.metageneration),
        "X-Goog-Stored-Content-Encoding": str(item.extra.get("contentEncoding") or "identity"),
        "X-Goog-Stored-Content-Length": str(item.size),
        "X-Goog-Storage-Class": str(item.extra.get("storageClass") or "STANDARD"),
    }
    shown = {"contentEncoding": "Content-Encoding", "cacheControl": "Cache-Control"}
    shown |= {"contentDisposition": "Content-Disposition", "contentLanguage": "Content-Language"}
    headers |= {name: str(item.extra[key]) for key, name in shown.items() if item.extra.get(key)}
    for key, value in (item.extra.get("metadata") or {}).items():
        headers[f"X-Goog-Meta-{key}"] = str(value)
    return headers
