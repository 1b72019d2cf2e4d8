"""The run's folder, local and on Cloud Storage (its JSON API served in this process)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from trainer.agent.folders import FolderError, GcsFolder, LocalFolder, open_folder
from trainer.agent.record import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trainer.agent.folders import RunFolder


class Bucket(BaseHTTPRequestHandler):
    """The few calls of the JSON API that the agent makes."""

    objects: dict[str, bytes] = {}

    def _reply(self, code: int, body: bytes = b"{}") -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _name(self) -> str:
        path = urlsplit(self.path).path
        return unquote(path.partition("/o/")[2])

    def _resource(self, name: str) -> bytes:
        size = len(self.objects[name])
        return json.dumps({"name": name, "bucket": "b", "size": str(size)}).encode()

    def do_GET(self) -> None:
        name = self._name()
        if name not in self.objects:
            self._reply(404)
        elif "media" in parse_qs(urlsplit(self.path).query).get("alt", []):
            self._reply(200, self.objects[name])
        else:
            self._reply(200, self._resource(name))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        name = self._name()
        if "/copyTo/" in name or "/rewriteTo/" in name:
            source, _, target = name.partition("/copyTo/")
            target = target.partition("/o/")[2]
            self.objects[target] = self.objects[source]
            self._reply(200, self._resource(target))
            return
        boundary = self.headers["Content-Type"].partition("boundary=")[2].strip("\"'").encode()
        _, meta, content, _ = body.split(b"--" + boundary)
        name = json.loads(meta.partition(b"\r\n\r\n")[2])["name"]
        self.objects[name] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        self._reply(200, self._resource(name))

    def do_DELETE(self) -> None:
        self._reply(204 if self.objects.pop(self._name(), None) is not None else 404, b"")

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(params=["local", "gs"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RunFolder]:
    """Return an empty folder of each kind."""
    if request.param == "local":
        yield open_folder(str(tmp_path / "run"))
        return
    handler = type("OwnBucket", (Bucket,), {"objects": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "demo")
    yield open_folder("gs://b/tpudash/runs/demo")
    server.shutdown()
    server.server_close()


def test_kinds() -> None:
    assert isinstance(open_folder("gs://b/x"), GcsFolder)
    assert isinstance(open_folder("/x"), LocalFolder)
    with pytest.raises(FolderError):
        open_folder("relative/x")


def test_files_are_replaced_as_a_whole(folder: RunFolder) -> None:
    assert folder.read("attempts/1.json") is None
    folder.write("attempts/1.json", b"one")
    folder.write("attempts/1.json", b"two")
    assert folder.read("attempts/1.json") == b"two"


def test_corrupt_file_is_kept_under_another_name(folder: RunFolder) -> None:
    told: list[str] = []
    for number in (1, 2):
        folder.write("run.json", b"{torn %d" % number)
        assert read_json(folder, "run.json", told.append) is None
        assert folder.read("run.json") is None
        assert folder.read(f"run.json.corrupt-{number}") == b"{torn %d" % number
    assert "set aside as run.json.corrupt-1" in told[0]


def test_unwritable_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError):
        open_folder(str(tmp_path / "file")).write("attempts/1.json", b"x")
