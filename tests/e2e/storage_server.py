"""Cloud Storage on loopback, as far as TensorFlow's own gs:// file system uses it.

Its hosts are compiled in, but it honours `https_proxy` and `CURL_CA_BUNDLE`: this server plays the
proxy, ends TLS with a throw-away authority, and keeps the objects in memory.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import trustme

if TYPE_CHECKING:
    from pathlib import Path

_HOSTS = ("www.googleapis.com", "storage.googleapis.com")


class StorageServer:
    """Serves one bucket called `b`.

    Attributes:
        objects: content by name.
        environment: what a process must be given to use this server as gs://.
    """

    def __init__(self, folder: Path) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, str] = {}
        authority = trustme.CA()
        bundle = folder / "authority.pem"
        authority.cert_pem.write_to_path(str(bundle))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*_HOSTS).configure_cert(self._tls)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.environment = {
            "https_proxy": f"http://127.0.0.1:{self._socket.getsockname()[1]}",
            "CURL_CA_BUNDLE": str(bundle),
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
            "NO_GCE_CHECK": "true",
            "GCS_RETRY_CONFIG_MAX_RETRIES": "1",
        }
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                received = connection.recv(1)
                if not received:
                    return
                head += received
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            handler = type("OwnHandler", (_Handler,), {"storage": self})
            with self._tls.wrap_socket(connection, server_side=True) as tunnel:
                handler(tunnel, ("127.0.0.1", 0), None)


class _Handler(BaseHTTPRequestHandler):
    """The calls of the JSON and XML interfaces that TensorFlow makes."""

    protocol_version = "HTTP/1.1"
    storage: StorageServer

    def log_message(self, *_: Any) -> None:
        return

    def _reply(self, code: int, body: bytes | dict[str, Any] = b"", location: str = "") -> None:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _resource(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "bucket": "b",
            "size": str(len(self.storage.objects[name])),
            "generation": "1",
            "updated": "2026-12-01T00:00:00.000Z",
        }

    def _keep(self, name: str, content: bytes) -> None:
        self.storage.objects[name] = content
        self._reply(200, self._resource(name))

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if self.headers["Host"].startswith("storage.") and "/storage/v1/" not in parts.path:
            self._read(unquote(parts.path.split("/", 2)[2]))
        elif parts.path.endswith("/o"):
            self._list({key: each[0] for key, each in parse_qs(parts.query).items()})
        elif "/o/" not in parts.path:
            self._reply(200, {"name": "b", "location": "US"})
        else:
            name = unquote(parts.path.partition("/o/")[2])
            found = name in self.storage.objects
            self._reply(200, self._resource(name)) if found else self._reply(404)

    def _read(self, name: str) -> None:
        content = self.storage.objects.get(name)
        if content is None:
            self._reply(404)
            return
        wanted = self.headers.get("Range", "bytes=0-").partition("=")[2].split("-")
        begin, end = int(wanted[0]), int(wanted[1] or len(content) - 1)
        part = content[begin : end + 1]
        self._reply(206 if part else 416, part)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        items: list[dict[str, Any]] = []
        folders: dict[str, None] = {}
        for name in sorted(self.storage.objects):
            rest = name.removeprefix(prefix)
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                items.append(self._resource(name))
        most = int(query.get("maxResults", 1000))
        self._reply(200, {"items": items[:most], "prefixes": list(folders)[:most]})

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        query = {key: each[0] for key, each in parse_qs(parts.query).items()}
        content = self._body()
        if "/rewriteTo/" in parts.path:
            source, _, target = parts.path.partition("/rewriteTo/")
            names = [unquote(each.partition("/o/")[2]) for each in (source, target)]
            self.storage.objects[names[1]] = self.storage.objects[names[0]]
            self._reply(200, {"done": True, "resource": self._resource(names[1])})
        elif query["uploadType"] == "media":
            if query.get("ifGenerationMatch") == "0" and query["name"] in self.storage.objects:
                self._reply(412)
            else:
                self._keep(query["name"], content)
        else:
            key = str(len(self.storage.uploads))
            self.storage.uploads[key] = query["name"]
            where = f"https://www.googleapis.com/upload/storage/v1/b/b/o?upload_id={key}"
            self._reply(200, location=where)

    def do_PUT(self) -> None:
        key = parse_qs(urlsplit(self.path).query)["upload_id"][0]
        self._keep(self.storage.uploads[key], self._body())

    def do_DELETE(self) -> None:
        name = unquote(urlsplit(self.path).path.partition("/o/")[2])
        found = self.storage.objects.pop(name, None) is not None
        self._reply(204 if found else 404)
