"""The JSON API of Cloud Storage: https://cloud.google.com/storage/docs/json_api/v1."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web

from tpudash.emulator.storage import download
from tpudash.emulator.storage.bodies import json_body
from tpudash.emulator.storage.errors import StorageError, invalid
from tpudash.emulator.storage.listing import list_page
from tpudash.emulator.storage.objects import Conditions, StoredObject
from tpudash.emulator.storage.resources import bucket_resource, object_resource
from tpudash.emulator.storage.store import DEFAULT_LOCATION

if TYPE_CHECKING:
    from tpudash.emulator.storage.store import BucketStore
    from tpudash.emulator.storage.uploads import Uploads


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, taken apart."""

    request: web.BaseRequest
    query: dict[str, str]
    parts: tuple[str, ...]
    """What the path names: buckets and objects, decoded."""

    @property
    def origin(self) -> str:
        """Where the caller reaches this server."""
        return f"{self.request.scheme}://{self.request.headers.get('Host', '')}"


Answer = Callable[[Exchange], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of the API."""

    name: str
    """Google's id of it, such as `objects.get`."""

    verb: str
    path: re.Pattern[str]
    answer: Answer


_BUCKET_FIELDS = ("labels", "lifecycle")
_B = r"/storage/v1/b/([^/]+)"
_O = _B + r"/o/([^/]+)"


class JsonApi:
    """Answers for the JSON API."""

    def __init__(self, store: BucketStore, uploads: Uploads) -> None:
        self._store = store
        self._uploads = uploads
        rows = (
            ("buckets.list", "GET", "/storage/v1/b", self._list_buckets),
            ("buckets.insert", "POST", "/storage/v1/b", self._insert_bucket),
            ("buckets.get", "GET", _B, self._get_bucket),
            ("buckets.patch", "PATCH", _B, self._patch_bucket),
            ("buckets.update", "PUT", _B, self._patch_bucket),
            ("buckets.delete", "DELETE", _B, self._delete_bucket),
            ("buckets.getStorageLayout", "GET", _B + "/storageLayout", self._get_layout),
            ("buckets.testIamPermissions", "GET", _B + "/iam/testPermissions", self._test_iam),
            ("objects.list", "GET", _B + "/o", self._list_objects),
            ("objects.get", "GET", _O, self._get_object),
            ("objects.get", "GET", "/download" + _O, self._get_object),
            ("objects.patch", "PATCH", _O, self._patch_object),
            ("objects.update", "PUT", _O, self._patch_object),
            ("objects.delete", "DELETE", _O, self._delete_object),
            ("objects.rewrite", "POST", _O + r"/rewriteTo/b/([^/]+)/o/([^/]+)", self._rewrite),
            ("objects.copy", "POST", _O + r"/copyTo/b/([^/]+)/o/([^/]+)", self._copy),
            ("objects.move", "POST", _O + r"/moveTo/o/([^/]+)", self._move),
            ("objects.compose", "POST", _O + "/compose", self._compose),
            ("objects.insert", "POST", r"(?:/resumable)?/upload" + _B + "/o", self._insert),
            ("objects.insert", "PUT", r"(?:/resumable)?/upload" + _B + "/o", self._advance),
            ("objects.insert", "DELETE", r"(?:/resumable)?/upload" + _B + "/o", self._cancel),
        )
        self.routes = tuple(Route(name, verb, re.compile(path), f) for name, verb, path, f in rows)

    def route(self, verb: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """Return the method that a raw path stands for and what it names, or None."""
        for route in self.routes:
            found = route.path.fullmatch(path) if route.verb == verb else None
            if found is not None:
                return route, tuple(unquote(part) for part in found.groups())
        return None

    # --------------------------------------------------------------- buckets

    async def _list_buckets(self, call: Exchange) -> web.Response:
        project, prefix = call.query.get("project", ""), call.query.get("prefix", "")
        items = [
            bucket_resource(bucket, call.origin) for bucket in self._store.buckets(project, prefix)
        ]
        return _json({"kind": "storage#buckets", "items": items})

    async def _insert_bucket(self, call: Exchange) -> web.Response:
        wanted = await json_body(call.request)
        project = call.query.get("project")
        if not project:
            raise invalid("Required parameter: project")
        location = str(wanted.get("location") or DEFAULT_LOCATION)
        extra = {"labels": wanted["labels"]} if wanted.get("labels") else {}
        bucket = self._store.make_bucket(str(wanted.get("name", "")), project, location, extra)
        return _json(bucket_resource(bucket, call.origin))

    async def _get_bucket(self, call: Exchange) -> web.Response:
        return _json(bucket_resource(self._store.bucket(call.parts[0]), call.origin))

    async def _patch_bucket(self, call: Exchange) -> web.Response:
        changes = await json_body(call.request)
        kept: dict[str, Any] = {
            key: changes[key] for key in ("labels", "lifecycle") if key in changes
        }
        return _json(bucket_resource(self._store.change_bucket(call.parts[0], kept), call.origin))

    async def _delete_bucket(self, call: Exchange) -> web.Response:
        self._store.remove_bucket(call.parts[0])
        return web.Response(status=204)

    async def _get_layout(self, call: Exchange) -> web.Response:
        resource = bucket_resource(self._store.bucket(call.parts[0]), call.origin)
        shown = {key: resource[key] for key in ("location", "locationType")}
        flat = {"hierarchicalNamespace": {"enabled": False}}
        return _json({"kind": "storage#storageLayout", "bucket": call.parts[0], **shown, **flat})

    async def _test_iam(self, call: Exchange) -> web.Response:
        self._store.bucket(call.parts[0])
        wanted = call.request.query.getall("permissions", [])
        kind = "storage#testIamPermissionsResponse"
        return _json({"kind": kind, "permissions": list(wanted)})

    # --------------------------------------------------------------- objects

    async def _list_objects(self, call: Exchange) -> web.Response:
        page = list_page(self._store, call.parts[0], call.query)
        body: dict[str, Any] = {"kind": "storage#objects"}
        if page.items:
            body["items"] = [object_resource(item, call.origin) for item in page.items]
        if page.prefixes:
            body["prefixes"] = page.prefixes
        if page.next_token:
            body["nextPageToken"] = page.next_token
        return _json(body)

    async def _get_object(self, call: Exchange) -> web.StreamResponse:
        bucket, name = call.parts
        check = Conditions.of_query(call.query)
        item = self._store.get(bucket, name, call.query.get("generation"), check=check)
        if call.query.get("alt") == "media":
            return await download.send(call.request, item, self._store.path_of(item))
        return self._shown(call, item)

    async def _patch_object(self, call: Exchange) -> web.Response:
        bucket, name = call.parts
        changes = await json_body(call.request)
        check = Conditions.of_query(call.query)
        return self._shown(call, self._store.change(bucket, name, changes, check))

    async def _delete_object(self, call: Exchange) -> web.Response:
        bucket, name = call.parts
        check = Conditions.of_query(call.query)
        self._store.remove(bucket, name, check, call.query.get("generation"))
        return web.Response(status=204)

    def _source(self, call: Exchange) -> StoredObject:
        bucket, name = call.parts[:2]
        check = Conditions.of_query(call.query, "ifSource")
        return self._store.get(bucket, name, call.query.get("sourceGeneration"), check=check)

    async def _copied(self, call: Exchange) -> StoredObject:
        fields = await json_body(call.request)
        bucket, name = call.parts[2:]
        check = Conditions.of_query(call.query)
        return self._store.copy(self._source(call), bucket, name, fields, check)

    async def _rewrite(self, call: Exchange) -> web.Response:
        item = await self._copied(call)
        answer = {
            "kind": "storage#rewriteResponse",
            "done": True,
            "totalBytesRewritten": str(item.size),
            "objectSize": str(item.size),
            "resource": object_resource(item, call.origin),
        }
        return _json(answer)

    async def _copy(self, call: Exchange) -> web.Response:
        return self._shown(call, await self._copied(call))

    async def _move(self, call: Exchange) -> web.Response:
        bucket, name, new_name = call.parts
        source = self._source(call)
        check = Conditions.of_query(call.query)
        item = self._store.copy(source, bucket, new_name, {}, check)
        self._store.remove(bucket, name, Conditions(generation=source.generation))
        return self._shown(call, item)

    async def _compose(self, call: Exchange) -> web.Response:
        bucket, name = call.parts
        wanted = await json_body(call.request)
        sources = []
        for row in wanted.get("sourceObjects", []):
            conditions = {
                f"if{key[2:]}": str(value)
                for key, value in row.get("objectPreconditions", {}).items()
            }
            check = Conditions.of_query(conditions)
            generation = row.get("generation")
            text = None if generation is None else str(generation)
            sources.append(self._store.get(bucket, str(row.get("name")), text, check=check))
        fields = wanted.get("destination") or {}
        check = Conditions.of_query(call.query)
        return self._shown(call, self._store.compose(bucket, name, sources, fields, check))

    # --------------------------------------------------------------- uploads

    async def _insert(self, call: Exchange) -> web.StreamResponse:
        bucket, query = call.parts[0], call.query
        kind = query.get("uploadType")
        if "upload_id" in query:
            return await self._advance(call)
        if kind == "media":
            name = query.get("name")
            if not name:
                raise invalid("Required parameter: name")
            fields = {"contentType": call.request.headers.get("Content-Type")}
            check = Conditions.of_query(query)
            item = await self._uploads.media(call.request, bucket, name, fields, check)
            return self._shown(call, item)
        if kind == "multipart":
            return self._shown(call, await self._uploads.multipart(call.request, bucket, query))
        if kind == "resumable":
            upload_id = await self._uploads.begin(call.request, bucket, query)
            where = (
                f"{call.origin}/upload/storage/v1/b/{bucket}/o"
                f"?uploadType=resumable&upload_id={upload_id}"
            )
            return web.Response(headers={"Location": where, "X-GUploader-UploadID": upload_id})
        raise invalid(f"Invalid value for uploadType: '{kind}'")

    async def _advance(self, call: Exchange) -> web.StreamResponse:
        result = await self._uploads.advance(call.request, call.query.get("upload_id", ""))
        return self._shown(call, result) if isinstance(result, StoredObject) else result

    async def _cancel(self, call: Exchange) -> web.Response:
        self._uploads.cancel(call.query.get("upload_id", ""))
        return web.Response(status=499, reason="Client Closed Request")

    @staticmethod
    def _shown(call: Exchange, item: StoredObject) -> web.Response:
        return _json(object_resource(item, call.origin))


def _json(body: dict[str, Any]) -> web.Response:
    return web.Response(text=json.dumps(body), content_type="application/json")


def json_refusal(error: StorageError) -> web.Response:
    """Return a refusal in the shape of the JSON API."""
    if error.status == 304:
        return web.Response(status=304)
    text = json.dumps(error.as_json())
    return web.Response(status=error.status, text=text, content_type="application/json")
