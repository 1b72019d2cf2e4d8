"""The bucket gateway: the same behaviour in a folder and in Cloud Storage."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.fake_google import FastClock
from tests.contract.fake_storage import FakeStorage, fake_storage
from tpudash.errors import (
    ConfigurationError,
    NotAllowedError,
    NotFoundError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)
from tpudash.gateways.bucket import Buckets
from tpudash.gateways.clients import Clients
from tpudash.gateways.endpoint import parse_endpoint
from tpudash.gateways.retry import Caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def storage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeStorage]:
    async with fake_storage() as fake:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", fake.url)
        fake.buckets["bkt"] = {}
        yield fake


def make_buckets() -> Buckets:
    clients = Clients(parse_endpoint("127.0.0.1:1"), quota_project=None, impersonate=None)
    return Buckets(clients, Caller(FastClock(), random.Random(1)), "demo")


@pytest.fixture(params=["folder", "gs"])
def bucket(request: Any, tmp_path: Path, storage: FakeStorage) -> str:
    """The URL of a bucket that exists."""
    if request.param == "gs":
        return "gs://bkt"
    (tmp_path / "b").mkdir()
    return str(tmp_path / "b")


async def test_files_come_and_go(bucket: str) -> None:
    buckets = make_buckets()
    run = f"{bucket}/tpudash/runs/demo"
    assert await buckets.exists(bucket)
    assert not await buckets.exists(run)
    assert await buckets.read(f"{run}/run.json") is None
    assert await buckets.list(f"{bucket}/tpudash/runs") == ()

    assert await buckets.write(f"{run}/run.json", b"one")
    assert await buckets.write(f"{run}/run.json", b"two")
    assert await buckets.read(f"{run}/run.json") == b"two"
    assert not await buckets.write(f"{run}/run.json", b"three", only_if_absent=True)
    assert await buckets.read(f"{run}/run.json") == b"two"
    assert await buckets.write(f"{run}/attempts/1.json", b"\x00\xff", only_if_absent=True)
    assert await buckets.read(f"{run}/attempts/1.json") == b"\x00\xff"

    assert await buckets.list(run) == (f"{run}/attempts", f"{run}/run.json")
    assert await buckets.list(f"{bucket}/tpudash/runs") == (run,)
    assert await buckets.exists(run)
    assert await buckets.exists(f"{run}/run.json")

    await buckets.rename(f"{run}/run.json", f"{run}/quarantine/run.json")
    assert await buckets.list(run) == (f"{run}/attempts", f"{run}/quarantine")
    assert await buckets.read(f"{run}/quarantine/run.json") == b"two"
    with pytest.raises(NotFoundError):
        await buckets.rename(f"{run}/run.json", f"{run}/other.json")


async def test_of_many_who_write_at_once_one_is_first(bucket: str) -> None:
    buckets = make_buckets()
    url = f"{bucket}/tpudash/runs/demo/run.json"
    contents = [f"writer {number}".encode() * 1_000 for number in range(8)]
    written = await asyncio.gather(
        *(buckets.write(url, content, only_if_absent=True) for content in contents)
    )
    assert written.count(True) == 1
    assert await buckets.read(url) == contents[written.index(True)]


@pytest.fixture(params=["folder", "gs"])
def missing(request: Any, tmp_path: Path, storage: FakeStorage) -> tuple[str, str]:
    """The URL of a bucket that does not exist, and what the hint has to say."""
    if request.param == "gs":
        return "gs://nowhere", "gcloud storage buckets create gs://nowhere"
    return str(tmp_path / "nowhere"), f"mkdir -p {tmp_path / 'nowhere'}"


async def test_a_missing_bucket_is_named_and_never_made(missing: tuple[str, str]) -> None:
    url, hint = missing
    buckets = make_buckets()
    assert not await buckets.exists(url)
    assert not await buckets.exists(f"{url}/tpudash/runs/demo")
    for call in (
        buckets.write(f"{url}/tpudash/runs/demo/run.json", b"x"),
        buckets.list(f"{url}/tpudash/runs"),
        buckets.list(url),
    ):
        with pytest.raises(NotFoundError) as caught:
            await call
        assert "nowhere" in caught.value.title
        assert hint in caught.value.hint
    assert not await buckets.exists(url)


async def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    folder.mkdir()
    (folder / "tpudash").write_text("a file where a folder should be")
    with pytest.raises(TpudashError) as caught:
        await make_buckets().write(f"{folder}/tpudash/runs/demo/run.json", b"x")
    assert str(folder) in caught.value.title


async def test_what_is_half_written_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / ".tpudash-part-x").write_bytes(b"half")
    (tmp_path / "whole").write_bytes(b"whole")
    assert await make_buckets().list(str(tmp_path)) == (str(tmp_path / "whole"),)


@pytest.mark.parametrize(
    "url", ["relative/folder", "", "s3://x", "gs://", "gs:///x", "gs://-b-/x", "gs://B/x", "/a\0b"]
)
async def test_what_is_no_bucket(url: str, storage: FakeStorage) -> None:
    with pytest.raises(ConfigurationError):
        await make_buckets().read(url)


async def test_a_question_to_storage_is_asked_again(storage: FakeStorage) -> None:
    buckets = make_buckets()
    await buckets.write("gs://bkt/x", b"1")
    storage.failures = [503, 503]
    assert await buckets.read("gs://bkt/x") == b"1"


async def test_a_write_without_an_answer_is_not_repeated(storage: FakeStorage) -> None:
    storage.failures = [503]
    with pytest.raises(OutcomeUnknownError):
        await make_buckets().write("gs://bkt/x", b"1")
    assert sum(request.startswith("POST") for request in storage.requests) == 1


async def test_what_storage_refuses(storage: FakeStorage) -> None:
    buckets = make_buckets()
    storage.failures = [403]
    with pytest.raises(NotAllowedError):
        await buckets.read("gs://bkt/x")
    storage.failures = [401]
    with pytest.raises(NotAllowedError):
        await buckets.list("gs://bkt/x")


async def test_storage_that_is_not_there(monkeypatch: pytest.MonkeyPatch, unused_port: int) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{unused_port}")
    with pytest.raises(UnreachableError):
        await make_buckets().exists("gs://bkt")


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


async def test_a_local_endpoint_never_touches_real_buckets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        await make_buckets().exists("gs://bkt")
    assert "folder" in caught.value.hint
