"""Uploads: at once, with metadata in front, or in pieces that may come one by one.

https://cloud.google.com/storage/docs/uploads-downloads and .../docs/performing-resumable-uploads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tpudash.emulator.storage.bodies import json_body, split_related, stream_into, whole_body
from tpudash.emulator.storage.content import Content
from tpudash.emulator.storage.errors import StorageError, invalid
from tpudash.emulator.storage.objects import Conditions, StoredObject
from tpudash.emulator.storage.sessions import Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.emulator.storage.store import BucketStore

_RANGE = re.compile(r"bytes (\*|(\d+)-(\d+))/(\*|\d+)")


class Uploads:
    """Takes content in."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._sessions = Sessions(store)

    async def media(
        self,
        request: web.BaseRequest,
        bucket: str,
        name: str,
        fields: Mapping[str, Any],
        check: Conditions,
    ) -> StoredObject:
        """Take a body that is the content."""
        self._store.bucket(bucket)
        content = Content(self._store.parts)
        try:
            await stream_into(request, content)
            return self._store.put(bucket, name, content, fields, check)
        finally:
            content.discard()

    async def multipart(
        self, request: web.BaseRequest, bucket: str, query: Mapping[str, str]
    ) -> StoredObject:
        """Take a body of two parts: metadata and content."""
        self._store.bucket(bucket)
        content_type = request.headers.get("Content-Type", "")
        fields, media_type, data = split_related(content_type, await whole_body(request))
        fields.setdefault("contentType", media_type or None)
        content = Content(self._store.parts)
        try:
            content.write(data)
            return self._store.put(
                bucket, _name(query, fields), content, fields, Conditions.of_query(query)
            )
        finally:
            content.discard()

    async def begin(self, request: web.BaseRequest, bucket: str, query: Mapping[str, str]) -> str:
        """Begin a resumable upload and return its id."""
        self._store.bucket(bucket)
        fields = await json_body(request)
        media_type = request.headers.get("X-Upload-Content-Type")
        fields.setdefault("contentType", media_type)
        name = _name(query, fields)
        check = Conditions.of_query(query)
        check.check(self._store.find(bucket, name))
        content = Content(self._store.uploads)
        return self._sessions.open(Session(bucket, name, fields, check, content))

    def begin_xml(self, bucket: str, name: str, fields: dict[str, Any], check: Conditions) -> str:
        """Begin a resumable upload of the XML API and return its id."""
        self._store.bucket(bucket)
        content = Content(self._store.uploads)
        return self._sessions.open(Session(bucket, name, fields, check, content))

    def cancel(self, upload_id: str) -> None:
        """Forget an upload.

        Raises:
            StorageError: 404 for an id that is not known.
        """
        self._sessions.forget(upload_id)

    async def advance(
        self, request: web.BaseRequest, upload_id: str
    ) -> StoredObject | web.Response:
        """Take a piece; return the object once complete, else how far it has come.

        A piece of unknown length, as TensorFlow sends it, is everything that is left.
        """
        session = self._sessions.get(upload_id)
        if session.result is not None:
            return session.result
        content = session.content
        first, total = _placed(request.headers.get("Content-Range"), content.size)
        if first > content.size:
            raise invalid(f"Invalid Content-Range: {first} bytes, {content.size} are here")
        await self._append(request, content, skipped=content.size - first)
        is_query = request.headers.get("Content-Range", "").startswith("bytes */")
        unknown = total is None and "Content-Range" in request.headers
        if unknown or (total is not None and content.size < total):
            return _progress(content.size)
        if total is not None and is_query and content.size != total:
            raise invalid(f"Invalid Content-Range: {content.size} bytes are here, not {total}")
        try:
            session.result = self._store.put(
                session.bucket, session.name, content, session.fields, session.check
            )
        except StorageError:
            self.cancel(upload_id)
            raise
        self._sessions.save(upload_id)
        return session.result

    @staticmethod
    async def _append(request: web.BaseRequest, content: Content, skipped: int) -> None:
        """Append the body without what is already here: pieces may come twice."""
        async for chunk in request.content.iter_chunked(256 * 1024):
            content.write(chunk[skipped:])
            skipped = max(0, skipped - len(chunk))


def _name(query: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    name = query.get("name") or fields.get("name")
    if not isinstance(name, str):
        raise invalid("Required parameter: name")
    return name


def _placed(header: str | None, size: int) -> tuple[int, int | None]:
    """Return where a piece begins and the size of the whole, None if that is not told."""
    if header is None:
        return size, None
    found = _RANGE.fullmatch(header.strip())
    if found is None:
        raise invalid(f"Invalid Content-Range: '{header}'")
    total = None if found[4] == "*" else int(found[4])
    return (size if found[1] == "*" else int(found[2])), total


def _progress(size: int) -> web.Response:
    """Say that more is wanted, in the manner of resumable uploads: 308, and a range without end."""
    headers = {"Range": f"bytes=0-{size - 1}"} if size else {}
    return web.Response(status=308, reason="Resume Incomplete", headers=headers)
