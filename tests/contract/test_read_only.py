"""A read-only connection: it reads everything, and nothing that changes the world can leave it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest

from tests.emulator_fixture import ZONE, fast_settings, node_name, running_cloud
from tpudash.domain.node import NodeTemplate, Scheduling
from tpudash.gateways.clients import ClientKind, Clients
from tpudash.gateways.connection import Connection, ConnectionOptions
from tpudash.gateways.endpoint import parse_endpoint
from tpudash.gateways.read_only import READ_METHODS, ReadOnlyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.emulator_fixture import Cloud as Emulated
    from tpudash.gateways.protocols import Cloud


@pytest.fixture
async def emulated(tmp_path: Path) -> AsyncIterator[Emulated]:
    async with running_cloud(fast_settings(tmp_path / "emulator")) as cloud:
        yield cloud


@pytest.fixture
async def reader(emulated: Emulated) -> AsyncIterator[Cloud]:
    connection = Connection(
        ConnectionOptions(project="demo", endpoint=emulated.endpoint, read_only=True)
    )
    yield await connection.cloud()
    await connection.close()


async def changes(emulated: Emulated) -> dict[str, int]:
    return await emulated.control.counters()


async def test_everything_that_the_screen_shows_can_be_read(
    reader: Cloud, emulated: Emulated
) -> None:
    await emulated.create("one")
    nodes = await reader.tpu.list_nodes()
    assert [node.node_id for node in nodes.nodes] == ["one"]
    assert (await reader.tpu.get_node(node_name("one"))).state == "READY"
    assert await reader.tpu.list_requests() is not None
    assert await reader.tpu.list_accelerator_types(ZONE)
    assert await reader.tpu.list_runtime_versions(ZONE)
    assert await reader.billing.list_tpu_prices() is not None


async def test_the_log_can_be_followed(reader: Cloud, emulated: Emulated) -> None:
    since = datetime.now(UTC) - timedelta(hours=1)
    entry = {
        "log_name": "projects/demo/logs/tpudash",
        "resource": {"type": "tpu_worker", "labels": {"node_id": "one", "worker_id": "0"}},
        "text_payload": "hello",
    }
    await emulated.logging.write_log_entries(entries=[entry], timeout=10)
    tail = reader.logging.tail('logName="projects/demo/logs/tpudash"', since=since)
    async with asyncio.timeout(10):
        async for batch in tail:
            if batch.entries:
                assert [one.text for one in batch.entries] == ["hello"]
                break
    await tail.aclose()  # type: ignore[attr-defined]


async def test_a_change_is_refused_before_it_leaves(reader: Cloud, emulated: Emulated) -> None:
    await emulated.create("one")
    before = await changes(emulated)
    template = NodeTemplate("v2-8", "tpu-vm-base", Scheduling.SPOT)
    with pytest.raises(ReadOnlyError, match=r"Tpu/CreateNode was refused"):
        await reader.tpu.create_node(ZONE, "two", template)
    with pytest.raises(ReadOnlyError):
        await reader.tpu.delete_node(node_name("one"))
    with pytest.raises(ReadOnlyError):
        await reader.tpu.delete_request(f"projects/demo/locations/{ZONE}/queuedResources/q")
    assert await changes(emulated) == before


async def test_no_file_can_be_written_or_moved(reader: Cloud, tmp_path: Path) -> None:
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    (bucket / "there").write_text("kept")
    with pytest.raises(ReadOnlyError):
        await reader.bucket.write(f"{bucket}/new", b"x")
    with pytest.raises(ReadOnlyError):
        await reader.bucket.rename(f"{bucket}/there", f"{bucket}/elsewhere")
    assert await reader.bucket.read(f"{bucket}/there") == b"kept"
    assert [path.name for path in bucket.iterdir()] == ["there"]


@pytest.mark.parametrize("kind", list(ClientKind))
async def test_of_each_client_only_the_listed_methods_get_through(
    kind: ClientKind, emulated: Emulated
) -> None:
    clients = Clients(
        parse_endpoint(emulated.endpoint), quota_project=None, impersonate=None, read_only=True
    )
    channel = await clients.channel()
    client = await clients.get(kind)
    refused = []
    try:
        for name in unary_methods(client):
            rpc = channel.unary_unary(
                name, request_serializer=bytes, response_deserializer=lambda data: data
            )
            try:
                await rpc(b"", timeout=5)
            except ReadOnlyError:
                refused.append(name)
            except grpc.aio.AioRpcError:
                assert name in READ_METHODS
        assert refused
        assert READ_METHODS.isdisjoint(refused)
        assert not await changes(emulated)
    finally:
        await clients.close()


def unary_methods(client: Any) -> set[str]:
    """Return the full name of every method that a generated client would call on a channel."""
    seen: set[str] = set()

    def record(method: str, *_: Any, **__: Any) -> Any:
        seen.add(method)
        return lambda: None

    transport = client.transport
    transport._logged_channel = type(
        "Recorder", (), dict.fromkeys(STUB_KINDS, staticmethod(record))
    )
    transport._stubs.clear()
    for name in dir(type(transport)):
        if not name.startswith("_") and name not in {"grpc_channel", "kind", "host"}:
            getattr(transport, name)
    return {name for name in seen if "Tail" not in name}


STUB_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
