"""Answers that are well-formed and wrong: of other things, of no time, with broken details."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2
from google.longrunning import operations_pb2

from tests.contract.command_line import CommandLine
from tests.contract.fake_google import (
    TPU,
    FakeGoogle,
    connected,
    fake_google,
    raw_class,
    refusal,
)
from tests.emulator_fixture import PARENT, node_name
from tpudash.domain.failure import ErrorClass
from tpudash.errors import NotAllowedError, TpudashError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LIST = f"{TPU}/ListNodes"
REQUESTS = f"{TPU}/ListQueuedResources"
GET = f"{TPU}/GetNode"
NAME = node_name("demo-1")
OURS = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        server.on(LIST, lambda _: tpu_v2.ListNodesResponse())
        server.on(REQUESTS, lambda _: tpu_v2.ListQueuedResourcesResponse())
        yield server


def listed(fake: FakeGoogle, *nodes: Any, **fields: Any) -> None:
    """Let the server list these nodes."""
    fake.on(LIST, lambda _: tpu_v2.ListNodesResponse(nodes=nodes, **fields))


async def test_a_node_of_another_project_is_seen_and_never_touched(
    fake: FakeGoogle, tmp_path: Path
) -> None:
    foreign = NAME.replace("projects/demo/", "projects/victim/")
    listed(fake, tpu_v2.Node(name=foreign, state="READY", labels=OURS))
    command = CommandLine(tmp_path, fake.endpoint)
    (item,) = (await command("nodes", "--json")).items
    assert item["project"] == "victim"
    assert (await command("delete", "demo", "--yes")).is_refusal(4)
    assert (await command("delete", foreign, "--yes")).is_refusal(2)
    numbered = NAME.replace("projects/demo/", "projects/4711/")
    listed(fake, tpu_v2.Node(name=numbered, state="READY", labels=OURS))
    plan = (await command("delete", "demo", "--dry-run", "--json")).items[0]["plan"]
    assert numbered in {step["target"] for step in plan["steps"]}


async def test_an_answer_about_another_node_is_none(fake: FakeGoogle, tmp_path: Path) -> None:
    fake.on(GET, lambda _: tpu_v2.Node(name=node_name("innocent"), state="READY", labels=OURS))
    fake.on(f"{TPU}/DeleteNode", lambda _: operations_pb2.Operation(name=f"{PARENT}/operations/o"))
    async with asyncio.timeout(20), connected(fake.endpoint) as cloud:
        with pytest.raises(UnreachableError, match="no answer") as caught:
            await cloud.tpu.get_node(NAME)
    assert "innocent" in caught.value.detail
    listed(fake, tpu_v2.Node(name=NAME, state="READY", labels=OURS))
    done = await CommandLine(tmp_path, fake.endpoint)("delete", NAME, "--yes", within=20)
    assert done.is_refusal(1)
    assert fake.calls[f"{TPU}/DeleteNode"] == 0


async def test_a_refusal_whose_details_are_garbage_is_still_one(fake: FakeGoogle) -> None:
    def refused(_: Any) -> Any:
        error: Any = refusal("PERMISSION_DENIED", "Permission 'tpu.nodes.list' denied")
        for kind in ("no.such.Type", "google.rpc.ErrorInfo", "google.rpc.DebugInfo"):
            error.status.details.add(type_url=f"type.googleapis.com/{kind}", value=b"\xff" * 90)
        raise error

    fake.on(LIST, refused)
    async with asyncio.timeout(20), connected(fake.endpoint) as cloud:
        with pytest.raises(NotAllowedError) as caught:
            await cloud.tpu.list_nodes("us-central1-b")
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.PERMISSION
    assert fake.calls[LIST] == 1, "a refusal is not asked for again"


@pytest.mark.parametrize("code", ["CANCELLED", "UNKNOWN", "ABORTED", "UNIMPLEMENTED", "DATA_LOSS"])
async def test_a_refusal_without_words_is_told_by_its_code(fake: FakeGoogle, code: str) -> None:
    def refused(_: Any) -> Any:
        raise refusal(code, "")

    fake.on(GET, refused)
    async with asyncio.timeout(20), connected(fake.endpoint) as cloud:
        with pytest.raises(TpudashError) as caught:
            await cloud.tpu.get_node(NAME)
    assert caught.value.detail == code


async def test_zones_without_a_name_or_an_end(fake: FakeGoogle, tmp_path: Path) -> None:
    listed(fake, unreachable=["", "x" * 5_000, "projects/demo/locations/us-east1-b"])
    done = await CommandLine(tmp_path, fake.endpoint)("nodes", "--json")
    assert done.envelope["unreachable"] == ["x" * 63, "us-east1-b"]


async def test_times_that_cannot_be_are_unknown(fake: FakeGoogle, tmp_path: Path) -> None:
    node = raw_class(tpu_v2.Node)(name=NAME, state=2**31 - 1, health=-5)
    node.create_time.seconds = 2**62
    request = raw_class(tpu_v2.QueuedResource)(name=f"{PARENT}/queuedResources/q")
    request.create_time.seconds = -(10**15)
    request.queueing_policy.valid_until_duration.seconds = -3600
    request.tpu.node_spec.add()
    nodes = raw_class(tpu_v2.ListNodesResponse)(nodes=[node])
    requests = raw_class(tpu_v2.ListQueuedResourcesResponse)(queued_resources=[request])
    fake.on(LIST, lambda _: nodes)
    fake.on(REQUESTS, lambda _: requests)
    command = CommandLine(tmp_path, fake.endpoint)
    (item,) = (await command("nodes", "--json")).items
    assert (item["state"], item["health"], item["age_s"]) == (str(2**31 - 1), "-5", None)
    (item,) = (await command("requests", "--json")).items
    assert item["age_s"] is None
    assert (await command("cost")).code == 0


async def test_the_same_page_again_and_again(fake: FakeGoogle) -> None:
    node = tpu_v2.Node(name=NAME, state="READY")
    listed(fake, node, next_page_token="again")
    async with asyncio.timeout(20), connected(fake.endpoint) as cloud:
        with pytest.raises(UnreachableError) as caught:
            await cloud.tpu.list_nodes("us-central1-b")
    assert "came again" in caught.value.detail
    assert fake.calls[LIST] == 2


async def test_a_place_that_is_not_known_is_not_gone(fake: FakeGoogle, tmp_path: Path) -> None:
    def missing(_: Any) -> Any:
        raise refusal("NOT_FOUND", "Requested entity was not found.")

    fake.on(LIST, missing)
    done = await CommandLine(tmp_path, fake.endpoint)("nodes")
    assert done.is_refusal(1), done
    assert "no such place" in done.err
