"""The Cloud Storage face, through google-cloud-storage, plain HTTP and TLS behind the proxy."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from tests.emulator_fixture import Cloud, fast_settings, running_cloud
from tpudash.gateways.connection import Connection, ConnectionOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ResultT = TypeVar("ResultT")
BUCKET = "tpudash-emulator"
ODD_NAMES = ["a", "a/b", "a/", "../x", "%41", "über/~@ x", "x" * 300, ".", "..hidden"]


def client_of(cloud: Cloud) -> Any:
    """Return Google's client, pointed at the emulator."""
    return Client(
        project="demo",
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options={"api_endpoint": f"http://{cloud.emulator.addresses.storage}"},
    )


async def beside(cloud: Cloud, work: Callable[[Any], ResultT]) -> ResultT:
    """Run work with Google's client in a thread beside the emulator's loop."""
    return await asyncio.to_thread(lambda: work(client_of(cloud)))


async def test_objects_come_change_and_go(emulator: Cloud) -> None:
    def work(client: Any) -> None:
        bucket = client.bucket(BUCKET)
        blob = bucket.blob("x/y")
        blob.metadata = {"k": "v"}
        blob.upload_from_string(b"hello", content_type="text/plain", if_generation_match=0)
        first = bucket.get_blob("x/y")
        assert (first.size, first.content_type, first.metadata) == (5, "text/plain", {"k": "v"})
        with pytest.raises(exceptions.PreconditionFailed):
            bucket.blob("x/y").upload_from_string(b"other", if_generation_match=0)
        assert blob.download_as_bytes() == b"hello"
        assert blob.download_as_bytes(start=1, end=2) == b"el"
        bucket.blob("x/y").upload_from_string(b"newer", if_generation_match=first.generation)
        second = bucket.get_blob("x/y")
        assert second.generation > first.generation
        second.metadata = {"a": "b"}
        second.patch()
        assert bucket.get_blob("x/y").metageneration == 2
        copy = bucket.copy_blob(second, bucket, "z", if_source_generation_match=second.generation)
        assert (copy.crc32c, copy.md5_hash) == (second.crc32c, second.md5_hash)
        joined = bucket.blob("joined")
        joined.compose([second, copy])
        assert joined.download_as_bytes() == b"newernewer"
        second.delete(if_generation_match=second.generation)
        with pytest.raises(exceptions.NotFound):
            bucket.blob("x/y").download_as_bytes()

    await beside(emulator, work)


async def test_odd_names_are_kept_apart(emulator: Cloud) -> None:
    def work(client: Any) -> None:
        bucket = client.bucket(BUCKET)
        names = [name for name in ODD_NAMES if name != "."]
        for name in names:
            bucket.blob(name).upload_from_string(name.encode())
        found = [blob.name for blob in client.list_blobs(BUCKET)]
        assert found == sorted(names, key=str.encode)
        assert {name: bucket.blob(name).download_as_bytes() for name in names} == {
            name: name.encode() for name in names
        }
        with pytest.raises(exceptions.BadRequest):
            bucket.blob(".").upload_from_string(b"")

    await beside(emulator, work)
    root = emulator.emulator.settings.buckets_dir / BUCKET
    inside = [path for path in root.rglob("*") if path.is_file()]
    assert len(inside) == len(ODD_NAMES) - 1


async def test_lists_by_folder_and_page(emulator: Cloud) -> None:
    def work(client: Any) -> None:
        bucket = client.bucket(BUCKET)
        for name in ("a", "d/1", "d/2", "d/e/3", "f/"):
            bucket.blob(name).upload_from_string(b"")
        top = client.list_blobs(BUCKET, delimiter="/", page_size=1)
        assert ([blob.name for blob in top], top.prefixes) == (["a"], {"d/", "f/"})
        below = client.list_blobs(BUCKET, prefix="d/", delimiter="/")
        assert ([blob.name for blob in below], below.prefixes) == (["d/1", "d/2"], {"d/e/"})
        pages = client.list_blobs(BUCKET, page_size=2).pages
        assert [len(list(page)) for page in pages] == [2, 2, 1]
        assert [blob.name for blob in client.list_blobs(BUCKET, max_results=1)] == ["a"]
        with pytest.raises(exceptions.NotFound):
            list(client.list_blobs("no-such-bucket"))

    await beside(emulator, work)


async def test_large_objects_come_in_pieces(emulator: Cloud) -> None:
    data = random.Random(1).randbytes(3 * 256 * 1024 + 7)

    def work(client: Any) -> None:
        blob = client.bucket(BUCKET).blob("big", chunk_size=256 * 1024)
        blob.upload_from_string(data)
        assert client.bucket(BUCKET).blob("big").download_as_bytes() == data

    await beside(emulator, work)


async def test_buckets(emulator: Cloud) -> None:
    def work(client: Any) -> None:
        made = client.create_bucket("own-bucket", location="us-east1")
        assert (made.location, made.location_type) == ("US-EAST1", "region")
        with pytest.raises(exceptions.Conflict):
            client.create_bucket("own-bucket")
        with pytest.raises(exceptions.BadRequest):
            client.create_bucket("Not A Name")
        assert [bucket.name for bucket in client.list_buckets()] == ["own-bucket", BUCKET]
        wanted = ["storage.objects.create"]
        assert made.test_iam_permissions(wanted) == wanted
        made.blob("x").upload_from_string(b"")
        with pytest.raises(exceptions.Conflict):
            made.delete()
        made.delete(force=True)
        assert client.lookup_bucket("own-bucket") is None

    await beside(emulator, work)


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator")

    def write(client: Any) -> int:
        client.create_bucket("own-bucket")
        blob = client.bucket("own-bucket").blob("x")
        blob.upload_from_string(b"old")
        blob.upload_from_string(b"kept")
        return int(blob.generation)

    def read(client: Any) -> tuple[int, bytes]:
        blob = client.bucket("own-bucket").get_blob("x")
        return int(blob.generation), blob.download_as_bytes()

    async with running_cloud(settings) as cloud:
        generation = await beside(cloud, write)
    async with running_cloud(settings) as cloud:
        assert await beside(cloud, read) == (generation, b"kept")
    assert len(list((settings.buckets_dir / "own-bucket").iterdir())) == 1


def sent(url: str, method: str, data: bytes = b"", **headers: str) -> tuple[int, Any, bytes]:
    """Return status, headers and body of one plain request."""
    request = urllib.request.Request(url, data, method=method)
    for key, value in headers.items():
        request.add_header(key.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


async def test_an_upload_goes_on_after_a_restart(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator")

    async def at(path: str, method: str, data: bytes, **headers: str) -> tuple[int, Any, bytes]:
        url = f"http://{cloud.emulator.addresses.storage}{path}"
        return await asyncio.to_thread(lambda: sent(url, method, data, **headers))

    async with running_cloud(settings) as cloud:
        begin = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name=x"
        _, headers, _ = await at(begin, "POST", b'{"metadata": {"k": "v"}}')
        path = "/" + headers["Location"].split("/", 3)[3]
        first = await at(path, "PUT", b"abcd", Content_Range="bytes 0-3/8")
        assert (first[0], first[1]["Range"]) == (308, "bytes=0-3")
    async with running_cloud(settings) as cloud:
        asked = await at(path, "PUT", b"", Content_Range="bytes */8")
        assert (asked[0], asked[1]["Range"]) == (308, "bytes=0-3")
        status, _, body = await at(path, "PUT", b"efgh", Content_Range="bytes 4-7/8")
        assert status == 200
        made = json.loads(body)
        assert (made["size"], made["metadata"]) == ("8", {"k": "v"})
    async with running_cloud(settings) as cloud:
        again = await at(path, "PUT", b"", Content_Range="bytes */8")
        assert json.loads(again[2])["generation"] == made["generation"]
        _, _, content = await at(f"/{BUCKET}/x", "GET", b"")
        assert content == b"abcdefgh"
        assert not await asyncio.to_thread(lambda: list(tmp_path.rglob("part-*")))


async def test_faults_reach_storage(emulator: Cloud) -> None:
    await emulator.control.add_fault("503", method="google.storage.v1/objects.get", count=1)
    await emulator.control.add_fault("403", method="objects.insert", count=1)

    def work(client: Any) -> None:
        blob = client.bucket(BUCKET).blob("x")
        with pytest.raises(exceptions.Forbidden):
            blob.upload_from_string(b"data", retry=None)
        blob.upload_from_string(b"data", retry=None)
        with pytest.raises(exceptions.ServiceUnavailable):
            blob.download_as_bytes(retry=None)
        assert blob.download_as_bytes(retry=None) == b"data"

    await beside(emulator, work)


async def test_the_gateway_finds_the_buckets_by_itself(
    emulator: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    connection = Connection(ConnectionOptions(project="demo", endpoint=emulator.endpoint))
    try:
        bucket = (await connection.cloud()).bucket
        assert await bucket.exists(f"gs://{BUCKET}")
        assert await bucket.write(f"gs://{BUCKET}/a/b", b"x", only_if_absent=True)
        assert not await bucket.write(f"gs://{BUCKET}/a/b", b"y", only_if_absent=True)
        assert await bucket.read(f"gs://{BUCKET}/a/b") == b"x"
        assert await bucket.list(f"gs://{BUCKET}") == (f"gs://{BUCKET}/a",)
    finally:
        await connection.close()


def through_proxy(cloud: Cloud, host: str) -> tuple[socket.socket, bytes]:
    """Open a tunnel to a host and return the connection and the proxy's answer; blocks."""
    name, _, port = cloud.emulator.addresses.proxy.rpartition(":")
    opened = socket.create_connection((name, int(port)), timeout=10)
    opened.sendall(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        received = opened.recv(1)
        if not received:
            break
        answer += received
    return opened, answer


def put_as_tensorflow_does(cloud: Cloud, head: bytes, body: bytes) -> bytes:
    """Send one request through the proxy and TLS, and return all of the answer; blocks."""
    opened, answer = through_proxy(cloud, "www.googleapis.com:443")
    assert b" 200 " in answer
    context = ssl.create_default_context(cafile=str(cloud.emulator.addresses.authority))
    with context.wrap_socket(opened, server_hostname="www.googleapis.com") as tunnel:
        tunnel.sendall(head.replace(b"\n", b"\r\n") + b"\r\n\r\n" + body)
        received = b""
        while part := tunnel.recv(65_536):
            received += part
    return received


async def test_tensorflows_dialect_behind_tls(emulator: Cloud) -> None:
    """An identity encoding beside a length, and a length beside chunks."""
    url = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=".encode()
    host = b"Host: www.googleapis.com\n"
    empty = b"POST " + url + b"dir%2F&ifGenerationMatch=0 HTTP/1.1\n" + host
    empty += b"Transfer-Encoding: identity\nContent-Length: 0"
    chunked = b"POST " + url + b"dir%2Ffile HTTP/1.1\n" + host
    chunked += b"Transfer-Encoding: chunked\nContent-Length: 6"
    for head, body in ((empty, b""), (chunked, b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")):
        answer = await asyncio.to_thread(put_as_tensorflow_does, emulator, head, body)
        assert answer.startswith(b"HTTP/1.1 200 "), answer

    def read(client: Any) -> dict[str, bytes]:
        return {blob.name: blob.download_as_bytes() for blob in client.list_blobs(BUCKET)}

    assert await beside(emulator, read) == {"dir/": b"", "dir/file": b"abcdef"}


async def test_the_proxy_keeps_away_from_the_real_cloud(emulator: Cloud) -> None:
    opened, answer = await asyncio.to_thread(through_proxy, emulator, "compute.googleapis.com:443")
    opened.close()
    assert answer.startswith(b"HTTP/1.1 403 ")
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        opened, answer = await asyncio.to_thread(through_proxy, emulator, host)
        assert answer.startswith(b"HTTP/1.1 200 ")
        other, _ = await asyncio.to_thread(listener.accept)
        opened.sendall(b"ping")
        assert await asyncio.to_thread(other.recv, 4) == b"ping"
        other.close()
        opened.close()


async def test_the_xml_api(emulator: Cloud) -> None:
    base = f"http://{emulator.emulator.addresses.storage}/{BUCKET}"

    def ask(path: str, **request: Any) -> tuple[int, bytes]:
        try:
            made = urllib.request.Request(base + path, **request)
            with urllib.request.urlopen(made, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def work() -> None:
        assert ask("/a%2Fb", data=b"0123456789", method="PUT")[0] == 200
        assert ask("/a%2Fb", headers={"Range": "bytes=2-4"}) == (206, b"234")
        assert ask("/a%2Fb", headers={"Range": "bytes=-3"}) == (206, b"789")
        assert ask("/a/b", headers={"Range": "bytes=10-"})[0] == 416
        condition = {"x-goog-if-generation-match": "0"}
        assert ask("/a%2Fb", data=b"", method="PUT", headers=condition)[0] == 412
        code, body = ask("/none")
        assert (code, b"NoSuchKey" in body) == (404, True)
        assert b"<Key>a/b</Key>" in ask("/?prefix=a")[1]
        assert ask("/a%2Fb", method="DELETE")[0] == 204

    await asyncio.to_thread(work)


async def test_nodes_are_led_to_the_emulator(emulator: Cloud) -> None:
    script = 'env > "$TPUDASH_NODE_DIR/env.new" && mv "$TPUDASH_NODE_DIR/env.new" "$HOME/env"'
    await emulator.create("a", metadata={"startup-script": script})
    (worker,) = emulator.emulator.host.workers()
    written = worker.directory / "home" / "env"
    async with asyncio.timeout(10):
        while not written.exists():  # noqa: ASYNC110  (another process writes it)
            await asyncio.sleep(0.01)
    seen = dict(line.split("=", 1) for line in written.read_text().splitlines() if "=" in line)
    wanted = emulator.emulator.addresses.environment()
    assert {key: seen.get(key) for key in wanted} == wanted
    assert seen["CLOUDSDK_CORE_PROJECT"] == "demo"
