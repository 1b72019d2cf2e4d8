"""The XML API of Cloud Storage: https://cloud.google.com/storage/docs/xml-api/reference-methods.

A path is `/BUCKET/OBJECT`, or `/OBJECT` on the host `BUCKET.storage.googleapis.com`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

from aiohttp import web

from tpudash.emulator.storage import download
from tpudash.emulator.storage.errors import StorageError
from tpudash.emulator.storage.listing import list_page
from tpudash.emulator.storage.objects import Conditions, StoredObject

if TYPE_CHECKING:
    from tpudash.emulator.storage.store import BucketStore
    from tpudash.emulator.storage.uploads import Uploads

_HOST = ".storage.googleapis.com"
_META = "x-goog-meta-"
_NAMES = {
    ("GET", True): "objects.get",
    ("HEAD", True): "objects.get",
    ("PUT", True): "objects.insert",
    ("POST", True): "objects.insert",
    ("DELETE", True): "objects.delete",
    ("GET", False): "objects.list",
    ("HEAD", False): "buckets.get",
}


class XmlApi:
    """Answers for the XML API."""

    def __init__(self, store: BucketStore, uploads: Uploads) -> None:
        self._store = store
        self._uploads = uploads

    @staticmethod
    def target(request: web.BaseRequest, path: str) -> tuple[str, str]:
        """Return bucket and object that a request names."""
        host = request.headers.get("Host", "").partition(":")[0]
        if host.endswith(_HOST):
            return host.removesuffix(_HOST), unquote(path[1:])
        bucket, _, name = path[1:].partition("/")
        return unquote(bucket), unquote(name)

    @staticmethod
    def method_of(verb: str, name: str) -> str:
        """Return the id of the method in the JSON API that does the same."""
        return _NAMES.get((verb, bool(name)), "unknown")

    async def answer(self, request: web.BaseRequest, bucket: str, name: str) -> web.StreamResponse:
        """Answer one request."""
        check = Conditions.of_headers(request.headers)
        verb = request.method
        if not name:
            return self._bucket(request, bucket)
        if verb in {"GET", "HEAD"}:
            item = self._store.get(bucket, name, request.query.get("generation"), check=check)
            return await download.send(request, item, self._store.path_of(item))
        if verb == "PUT":
            return await self._put(request, bucket, name, check)
        if verb == "POST" and request.headers.get("x-goog-resumable") == "start":
            upload_id = self._uploads.begin_xml(bucket, name, _fields(request), check)
            where = f"{request.scheme}://{request.headers.get('Host')}{request.path}"
            headers = {"Location": f"{where}?upload_id={upload_id}"}
            return web.Response(status=201, headers=headers)
        if verb == "DELETE":
            self._store.remove(bucket, name, check)
            return web.Response(status=204)
        raise StorageError(405, "methodNotAllowed", f"{verb} is not allowed here")

    async def _put(
        self, request: web.BaseRequest, bucket: str, name: str, check: Conditions
    ) -> web.StreamResponse:
        if "upload_id" in request.query:
            result = await self._uploads.advance(request, request.query["upload_id"])
            return _stored(result) if isinstance(result, StoredObject) else result
        if "x-goog-copy-source" in request.headers:
            return self._copy(request, bucket, name, check)
        fields = _fields(request)
        return _stored(await self._uploads.media(request, bucket, name, fields, check))

    def _copy(
        self, request: web.BaseRequest, bucket: str, name: str, check: Conditions
    ) -> web.Response:
        source = unquote(request.headers["x-goog-copy-source"]).removeprefix("/")
        source_bucket, _, source_name = source.partition("/")
        found = self._store.get(source_bucket, source_name, check=Conditions())
        return _stored(self._store.copy(found, bucket, name, {}, check))

    def _bucket(self, request: web.BaseRequest, name: str) -> web.Response:
        if request.method == "HEAD":
            self._store.bucket(name)
            return web.Response()
        if request.method != "GET":
            raise StorageError(405, "methodNotAllowed", "Use the JSON API for buckets")
        page = list_page(self._store, name, dict(request.query))
        rows = [
            f"<Contents><Key>{escape(item.name)}</Key><Generation>{item.generation}</Generation>"
            f"<MetaGeneration>{item.metageneration}</MetaGeneration>"
            f"<LastModified>{item.updated}</LastModified><ETag>&quot;{item.etag}&quot;</ETag>"
            f"<Size>{item.size}</Size></Contents>"
            for item in page.items
        ]
        rows += [
            f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>"
            for prefix in page.prefixes
        ]
        is_cut = str(bool(page.next_token)).lower()
        text = (
            "<?xml version='1.0' encoding='UTF-8'?>"
            "<ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
            f"<Name>{escape(name)}</Name><IsTruncated>{is_cut}</IsTruncated>"
            f"{''.join(rows)}</ListBucketResult>"
        )
        return web.Response(text=text, content_type="application/xml")


def _fields(request: web.BaseRequest) -> dict[str, Any]:
    """Return what the headers say of the object."""
    headers = request.headers
    fields: dict[str, Any] = {
        "contentType": headers.get("Content-Type"),
        "contentEncoding": headers.get("Content-Encoding"),
        "cacheControl": headers.get("Cache-Control"),
        "md5Hash": headers.get("Content-MD5"),
    }
    metadata = {
        key.lower().removeprefix(_META): value
        for key, value in headers.items()
        if key.lower().startswith(_META)
    }
    return fields | ({"metadata": metadata} if metadata else {})


def _stored(item: StoredObject) -> web.Response:
    headers = download.object_headers(item)
    kept = ("ETag", "X-Goog-Generation", "X-Goog-Metageneration", "X-Goog-Hash")
    return web.Response(headers={key: headers[key] for key in kept})


def xml_refusal(error: StorageError) -> web.Response:
    """Return a refusal in the shape of the XML API."""
    if error.status == 304:
        return web.Response(status=304)
    return web.Response(status=error.status, text=error.as_xml(), content_type="application/xml")
