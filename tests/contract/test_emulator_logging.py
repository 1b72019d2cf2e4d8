"""Logging through Google's own client: write, list, tail, delete, and the audit log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.api import monitored_resource_pb2
from google.api_core import exceptions
from google.cloud.logging_v2.types import (
    LogEntry,
    TailLogEntriesRequest,
    WriteLogEntriesPartialErrors,
)
from google.logging.type import log_severity_pb2

from tests.emulator_fixture import CALL, Cloud, eventually, fast_settings, node_name, running_cloud

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PROJECT = "projects/demo"
LOG = f"{PROJECT}/logs/tpudash"
START = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
WORKER = monitored_resource_pb2.MonitoredResource(
    type="tpu_worker",
    labels={"project_id": "demo", "zone": "us-central1-b", "node_id": "demo-1", "worker_id": "0"},
)


def entry(number: int, **fields: Any) -> LogEntry:
    """Return an entry whose time and insert id follow from its number."""
    defaults: dict[str, Any] = {
        "timestamp": START + timedelta(seconds=number),
        "insert_id": f"id-{number:04d}",
        "text_payload": f"line {number}",
        "severity": log_severity_pb2.INFO,
    }
    if "json_payload" in fields:
        del defaults["text_payload"]
    return LogEntry({**defaults, **fields})


async def write(cloud: Cloud, *entries: LogEntry, **options: Any) -> None:
    """Write entries of one worker."""
    request = {
        "log_name": LOG,
        "resource": WORKER,
        "labels": {"tpudash-run": "demo"},
        "entries": list(entries),
        **options,
    }
    await cloud.logging.write_log_entries(request, **CALL)


async def read(cloud: Cloud, text: str = "", **options: Any) -> list[LogEntry]:
    """Return the entries that a filter selects."""
    request = {"resource_names": [PROJECT], "filter": text, **options}
    return [item async for item in await cloud.logging.list_log_entries(request, **CALL)]


async def test_entries_come_back_in_order_with_what_the_request_adds(emulator: Cloud) -> None:
    await write(emulator, entry(2), entry(1), entry(3, labels={"tpudash-run": "other"}))
    found = await read(emulator, f'logName="{LOG}"')
    assert [item.text_payload for item in found] == ["line 1", "line 2", "line 3"]
    assert found[0].resource.labels["node_id"] == "demo-1"
    assert [item.labels["tpudash-run"] for item in found] == ["demo", "demo", "other"]
    newest = await read(emulator, f'logName="{LOG}"', order_by="timestamp desc", page_size=2)
    assert [item.text_payload for item in newest] == ["line 3", "line 2", "line 1"]


async def test_pages_neither_skip_nor_repeat(emulator: Cloud) -> None:
    same_time = [entry(1, insert_id=f"x{number}") for number in range(25)]
    await write(emulator, *same_time)
    for order in ("timestamp asc", "timestamp desc"):
        found = await read(emulator, "", order_by=order, page_size=7)
        assert sorted(item.insert_id for item in found) == sorted(f"x{n}" for n in range(25))


async def test_an_entry_sent_again_is_not_doubled(emulator: Cloud) -> None:
    await write(emulator, entry(1))
    await write(emulator, entry(1), entry(2))
    assert len(await read(emulator)) == 2


async def test_bad_entries_are_refused_one_by_one(emulator: Cloud) -> None:
    big = entry(2, text_payload="x" * (256 * 1024 + 1))
    with pytest.raises(exceptions.InvalidArgument) as caught:
        await write(emulator, entry(1), big, partial_success=True)
    (packed,) = caught.value.details
    detail = WriteLogEntriesPartialErrors.pb()()
    assert packed.Unpack(detail)
    assert list(detail.log_entry_errors) == [1]
    assert [item.text_payload for item in await read(emulator)] == ["line 1"]
    with pytest.raises(exceptions.InvalidArgument):
        await write(emulator, entry(3), big)
    assert len(await read(emulator)) == 1


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('resource.type="tpu_worker" AND resource.labels.node_id="demo-1"', {1, 2, 3}),
        ('log_id("tpudash")', {1, 2, 3}),
        ("severity>=WARNING", {2, 3}),
        ("severity=(ERROR OR INFO)", {1, 3}),
        ('labels.tpudash-run="demo" severity<ERROR', {1, 2}),
        ('labels."tpudash-run"="demo"', {1, 2, 3}),
        ('jsonPayload.event="step"', {1}),
        ("jsonPayload.step>=100 jsonPayload.loss<0.5", {1}),
        ('NOT jsonPayload.event="step"', {2, 3}),
        ('jsonPayload.event!="step"', set()),
        ("jsonPayload.event:*", {1}),
        ('textPayload=~"^out of (memory|disk)$"', {3}),
        ('textPayload:"MEMORY"', {3}),
        ("memory", {3}),
        ('timestamp>="2026-12-01T08:00:02Z" timestamp<"2026-12-01T08:00:03Z"', {2}),
        ('insertId="id-0001" OR insertId="id-0003"', {1, 3}),
        ("-severity=INFO -- a comment", {2, 3}),
    ],
)
async def test_filters(emulator: Cloud, text: str, numbers: set[int]) -> None:
    await write(
        emulator,
        entry(1, json_payload={"event": "step", "step": 100, "loss": 0.25}),
        entry(2, severity=log_severity_pb2.WARNING, text_payload="slow"),
        entry(3, severity=log_severity_pb2.ERROR, text_payload="out of memory"),
    )
    found = await read(emulator, text)
    assert {int(item.insert_id[3:]) for item in found} == numbers


@pytest.mark.parametrize("text", ["severity>=", "(a", '"open', 'severity>="LOUD"', "a=~(", "f(x)"])
async def test_a_filter_that_cannot_be_read_is_refused(emulator: Cloud, text: str) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Unparseable filter"):
        await read(emulator, text)


async def test_tail_delivers_what_arrives_and_only_what_matches(emulator: Cloud) -> None:
    async def requests() -> AsyncIterator[TailLogEntriesRequest]:
        yield TailLogEntriesRequest(
            resource_names=[PROJECT],
            filter="severity>=WARNING",
            buffer_window={"seconds": 0},
        )
        await asyncio.Event().wait()

    await write(emulator, entry(1, severity=log_severity_pb2.ERROR))
    stream = await emulator.logging.tail_log_entries(requests=requests(), timeout=20)
    logs = emulator.emulator.world.logs
    await eventually(lambda: logs.tails == 1, "the tail is open")
    await write(emulator, entry(2), entry(3, severity=log_severity_pb2.WARNING))
    async for response in stream:
        assert [item.insert_id for item in response.entries] == ["id-0003"]
        break
    stream.cancel()
    await eventually(lambda: logs.tails == 0, "the tail is closed")


async def test_logs_are_listed_and_deleted(emulator: Cloud) -> None:
    await write(emulator, entry(1))
    names = await emulator.logging.list_logs({"parent": PROJECT}, **CALL)
    assert [name async for name in names] == [LOG]
    await emulator.logging.delete_log({"log_name": LOG}, **CALL)
    assert await read(emulator) == []


async def test_creation_and_preemption_are_audited(emulator: Cloud) -> None:
    await emulator.create("a", scheduling_config={"spot": True})
    await emulator.control.preempt("a", 0)
    creates = await read(
        emulator,
        'resource.type="audited_resource" protoPayload.serviceName="tpu.googleapis.com" '
        'protoPayload.methodName="google.cloud.tpu.v2.Tpu.CreateNode"',
    )
    assert [(item.operation.first, item.operation.last) for item in creates] == [
        (True, False),
        (False, True),
    ]
    preempted = await read(emulator, 'protoPayload.methodName="compute.instances.preempted"')
    assert len(preempted) == 1
    ended = await read(
        emulator,
        f'protoPayload.methodName="tpu.nodes.terminate" '
        f'protoPayload.resourceName="{node_name("a")}"',
    )
    assert len(ended) == 1
    with pytest.raises(exceptions.InvalidArgument):
        await emulator.begin("b", runtime_version="none")
    failed = await read(emulator, 'severity=ERROR protoPayload.status.message:"runtime_version"')
    assert len(failed) == 1


async def test_entries_survive_a_restart(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator")
    async with running_cloud(settings) as cloud:
        await write(cloud, entry(1), entry(2))
    async with running_cloud(settings) as cloud:
        await write(cloud, entry(2), entry(3))
        assert [item.insert_id for item in await read(cloud)] == ["id-0001", "id-0002", "id-0003"]
