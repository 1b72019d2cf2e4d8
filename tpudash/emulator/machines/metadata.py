"""The metadata server of one worker, as Compute Engine and TPU VMs offer it.

After https://cloud.google.com/compute/docs/metadata/querying-metadata: the header is required,
folders list their keys, `recursive`, `alt`, `wait_for_change`, `last_etag` and `timeout_sec` work.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

Tree: TypeAlias = "dict[str, Tree | str]"
_HEADER = "Metadata-Flavor"
_ROOT = "/computeMetadata/v1"
_GUEST = "guest-attributes"
_MAX_GUEST_BYTES = 256 * 1024
_MAX_WAIT_S = 3600.0


class MetadataServer:
    """Serves a tree of values on a loopback port.

    Args:
        tree: Returns the current values, folders as dicts.
    """

    def __init__(self, tree: Callable[[], Tree]) -> None:
        self._tree = tree
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.guest_attributes: dict[str, str] = {}

    async def start(self) -> None:
        """Serve on a free port of 127.0.0.1."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._get)
        application.router.add_put(f"{_ROOT}/instance/{_GUEST}/{{key:.+}}", self._put)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop serving."""
        self.wake()
        if self._runner is not None:
            await self._runner.cleanup()

    def wake(self) -> None:
        """Tell waiting readers that a value has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _get(self, request: web.Request) -> web.Response:
        headers = {_HEADER: "Google", "Server": "Metadata Server for VM"}
        path = request.path
        if not path.startswith(_ROOT):
            return web.Response(text="computeMetadata/\n", headers=headers)
        if request.headers.get(_HEADER) != "Google":
            refusal = f"Missing required header: {_HEADER}: Google"
            return web.Response(status=403, text=refusal, headers=headers)
        parts = [part for part in path.removeprefix(_ROOT).split("/") if part]
        changed = self._changed
        text: str | None = self._render(parts, request.query)
        if text is not None and request.query.get("wait_for_change", "").lower() == "true":
            text = await self._after_change(parts, request.query, text, changed)
        if text is None:
            return web.Response(status=404, text="Not Found", headers=headers)
        headers["ETag"] = _etag(text)
        recursive = request.query.get("recursive", "").lower() == "true"
        kind = "application/json" if recursive or text.startswith("{") else "application/text"
        return web.Response(text=text, headers=headers, content_type=kind)

    async def _after_change(
        self, parts: list[str], query: Any, before: str, changed: asyncio.Event
    ) -> str | None:
        """Wait until the text at a path differs, or the caller's time is over."""
        last = query.get("last_etag")
        if last is not None and last != _etag(before):
            return before
        text: str | None = before
        try:
            async with asyncio.timeout(float(query.get("timeout_sec", _MAX_WAIT_S))):
                while text == before:
                    await changed.wait()
                    changed = self._changed
                    text = self._render(parts, query)
        except (TimeoutError, ValueError):
            return text
        return text

    def _render(self, parts: list[str], query: Any) -> str | None:
        """Return the text at a path, or None where there is nothing."""
        value: Tree | str = self._tree()
        for part in parts:
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        if isinstance(value, str):
            return value
        if query.get("recursive", "").lower() == "true":
            return json.dumps(_camel(value))
        return "".join(
            f"{key}/\n" if isinstance(item, dict) else f"{key}\n" for key, item in value.items()
        )

    async def _put(self, request: web.Request) -> web.Response:
        headers = {_HEADER: "Google"}
        if request.headers.get(_HEADER) != "Google":
            return web.Response(status=403, headers=headers)
        key = request.match_info["key"].strip("/")
        value = await request.text()
        if key.count("/") != 1 or len(value) > _MAX_GUEST_BYTES:
            return web.Response(status=400, headers=headers)
        self.guest_attributes[key] = value
        return web.Response(headers=headers)


def _etag(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _camel(value: Tree | str) -> Any:
    """Return a tree as recursive answers spell it: `projectId`, except for attributes' keys."""
    if isinstance(value, str):
        return value
    out = {}
    for key, item in value.items():
        if "@" in key:
            out[key] = _camel(item)
            continue
        head, *tail = key.split("-")
        spelled = head + "".join(word.capitalize() for word in tail)
        out[spelled] = (
            dict(item) if key == "attributes" and isinstance(item, dict) else _camel(item)
        )
    return out
