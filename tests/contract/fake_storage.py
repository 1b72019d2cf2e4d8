"""As much of Cloud Storage's JSON API as google-cloud-storage needs to move whole objects.

Source: https://cloud.google.com/storage/docs/json_api/v1
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class FakeStorage:
    """Buckets with objects, each with a generation.

    Attributes:
        failures: Statuses that the next requests are answered with.
    """

    buckets: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    url: str = ""
    generation: int = 0

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._watch])
        app.router.add_get("/storage/v1/b/{bucket}", self._bucket)
        app.router.add_get("/storage/v1/b/{bucket}/o", self._list)
        app.router.add_get("/storage/v1/b/{bucket}/o/{name}", self._object)
        app.router.add_delete("/storage/v1/b/{bucket}/o/{name}", self._delete)
        app.router.add_get("/download/storage/v1/b/{bucket}/o/{name}", self._object)
        app.router.add_post("/upload/storage/v1/b/{bucket}/o", self._upload)
        app.router.add_post(
            "/storage/v1/b/{bucket}/o/{name}/copyTo/b/{bucket2}/o/{new_name}", self._copy
        )
        return app

    @web.middleware
    async def _watch(self, request: web.Request, handler: Any) -> Any:
        self.requests.append(f"{request.method} {request.path}")
        if self.failures:
            return _error(self.failures.pop(0), "told to fail")
        bucket = request.match_info.get("bucket")
        if bucket is not None and bucket not in self.buckets:
            return _error(404, "The specified bucket does not exist.")
        return await handler(request)

    async def _bucket(self, request: web.Request) -> web.Response:
        return web.json_response({"kind": "storage#bucket", "name": request.match_info["bucket"]})

    async def _list(self, request: web.Request) -> web.Response:
        prefix = request.query.get("prefix", "")
        delimiter = request.query.get("delimiter")
        items, prefixes = [], set()
        bucket = request.match_info["bucket"]
        for name, (_, generation) in sorted(self.buckets[bucket].items()):
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                prefixes.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                items.append(_resource(bucket, name, generation))
        return web.json_response({"items": items, "prefixes": sorted(prefixes)})

    async def _object(self, request: web.Request) -> web.Response:
        bucket, name = request.match_info["bucket"], request.match_info["name"]
        found = self.buckets[bucket].get(name)
        if found is None:
            return _error(404, f"No such object: {bucket}/{name}")
        if request.query.get("alt") == "media":
            return web.Response(body=found[0])
        return web.json_response(_resource(bucket, name, found[1]))

    async def _delete(self, request: web.Request) -> web.Response:
        objects = self.buckets[request.match_info["bucket"]]
        if objects.pop(request.match_info["name"], None) is None:
            return _error(404, "No such object")
        return web.Response(status=204)

    async def _upload(self, request: web.Request) -> web.Response:
        bucket = request.match_info["bucket"]
        reader = await request.multipart()
        about: Any = await reader.next()
        name = json.loads(await about.text())["name"]
        content: Any = await reader.next()
        data = bytes(await content.read())
        wanted = request.query.get("ifGenerationMatch")
        if wanted == "0" and name in self.buckets[bucket]:
            return _error(412, "At least one of the pre-conditions you specified did not hold.")
        return self._put(bucket, name, data)

    async def _copy(self, request: web.Request) -> web.Response:
        match = request.match_info
        data, _ = self.buckets[match["bucket"]][match["name"]]
        return self._put(match["bucket2"], match["new_name"], data)

    def _put(self, bucket: str, name: str, data: bytes) -> web.Response:
        self.generation += 1
        self.buckets[bucket][name] = (data, self.generation)
        return web.json_response(_resource(bucket, name, self.generation))


def _resource(bucket: str, name: str, generation: int) -> dict[str, str]:
    return {"bucket": bucket, "name": name, "generation": str(generation), "metageneration": "1"}


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"code": status, "message": message}}, status=status)


@asynccontextmanager
async def fake_storage() -> AsyncIterator[FakeStorage]:
    """Serve on a port of its own."""
    fake = FakeStorage()
    runner = web.AppRunner(fake.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}"
    try:
        yield fake
    finally:
        await runner.cleanup()
