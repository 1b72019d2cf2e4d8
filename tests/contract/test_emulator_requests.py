"""Queued resources through Google's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import tpu_v2

from tests.emulator_fixture import CALL, PARENT, RUNTIME, Cloud, node_name

State = tpu_v2.QueuedResourceState.State
NAME = f"{PARENT}/queuedResources/q"


def request_for(*node_ids: str, **fields: Any) -> tpu_v2.QueuedResource:
    """Return a request for v2-8 nodes."""
    node = {"accelerator_type": "v2-8", "runtime_version": RUNTIME}
    specs = [{"parent": PARENT, "node_id": node_id, "node": node} for node_id in node_ids]
    return tpu_v2.QueuedResource(**{"tpu": {"node_spec": specs}, **fields})


async def queue(cloud: Cloud, resource: tpu_v2.QueuedResource) -> None:
    """Put a request into the queue."""
    await cloud.tpu.create_queued_resource(
        parent=PARENT, queued_resource_id="q", queued_resource=resource, **CALL
    )


async def reaches(cloud: Cloud, state: int) -> Any:
    """Wait until the request is in a state and return it."""
    seen = []
    for _ in range(500):
        resource = await cloud.tpu.get_queued_resource(name=NAME, **CALL)
        seen.append(resource.state.state.name)
        if resource.state.state == state:
            return resource
        await asyncio.sleep(0.01)
    raise AssertionError(f"never {State(state).name}: {sorted(set(seen))}")


async def remove(cloud: Cloud, *, force: bool = False) -> None:
    """Delete the request and wait until it is gone."""
    request = {"name": NAME, "force": force}
    await cloud.finish(await cloud.tpu.delete_queued_resource(request, **CALL))
    with pytest.raises(exceptions.NotFound):
        await cloud.tpu.get_queued_resource(name=NAME, **CALL)


async def test_a_request_becomes_a_spot_node(emulator: Cloud) -> None:
    await queue(emulator, request_for("a", spot={}))
    await reaches(emulator, State.ACTIVE)
    node = await emulator.get("a")
    assert node.scheduling_config.spot
    assert node.queued_resource == NAME
    with pytest.raises(exceptions.InvalidArgument, match="not supported while in state ACTIVE"):
        await emulator.tpu.delete_queued_resource({"name": NAME}, **CALL)


async def test_force_deletes_the_nodes_first(emulator: Cloud) -> None:
    await queue(emulator, request_for("a"))
    await reaches(emulator, State.ACTIVE)
    await remove(emulator, force=True)
    with pytest.raises(exceptions.NotFound):
        await emulator.get("a")


async def test_preemption_suspends_and_reset_queues_again(emulator: Cloud) -> None:
    await queue(emulator, request_for("a", spot={}))
    await reaches(emulator, State.ACTIVE)
    await emulator.control.preempt("a", 0)
    await reaches(emulator, State.SUSPENDED)
    operation = await emulator.tpu.reset_queued_resource({"name": NAME}, **CALL)
    await emulator.finish(operation)
    await reaches(emulator, State.ACTIVE)
    assert (await emulator.get("a")).state == tpu_v2.Node.State.READY


async def test_deleting_the_node_suspends_the_request(emulator: Cloud) -> None:
    await queue(emulator, request_for("a"))
    await reaches(emulator, State.ACTIVE)
    await emulator.delete("a")
    await reaches(emulator, State.SUSPENDED)
    await remove(emulator)


async def test_a_request_waits_for_capacity(emulator: Cloud) -> None:
    await emulator.control.set_capacity("us-central1-b", "v2", 0)
    await queue(emulator, request_for("a", "b"))
    await reaches(emulator, State.WAITING_FOR_RESOURCES)
    await emulator.control.set_capacity("us-central1-b", "v2", 4)
    assert not [item async for item in await emulator.tpu.list_nodes(parent=PARENT, **CALL)]
    await emulator.control.set_capacity("us-central1-b", "v2", 8)
    await reaches(emulator, State.ACTIVE)


async def test_an_expired_request_stays_listed_as_failed(emulator: Cloud) -> None:
    await emulator.control.set_capacity("us-central1-b", "v2-8", 0)
    await queue(
        emulator, request_for("a", queueing_policy={"valid_until_duration": {"seconds": 0}})
    )
    failed = await reaches(emulator, State.FAILED)
    assert failed.state.failed_data.error.code == 4
    listed = await emulator.tpu.list_queued_resources(parent=PARENT, **CALL)
    assert [item.name async for item in listed] == [NAME]
    await remove(emulator)


async def test_multislice_makes_numbered_nodes(emulator: Cloud) -> None:
    node = {"accelerator_type": "v2-8", "runtime_version": RUNTIME}
    spec = {
        "parent": PARENT,
        "multislice_params": {"node_count": 2, "node_id_prefix": "s"},
        "node": node,
    }
    await queue(emulator, tpu_v2.QueuedResource(tpu={"node_spec": [spec]}))
    await reaches(emulator, State.ACTIVE)
    nodes = [item.name async for item in await emulator.tpu.list_nodes(parent=PARENT, **CALL)]
    assert nodes == [node_name("s-0"), node_name("s-1")]


async def test_bad_requests_are_refused_at_the_call(emulator: Cloud) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await queue(emulator, request_for())
    await queue(emulator, request_for("a"))
    with pytest.raises(exceptions.AlreadyExists):
        await queue(emulator, request_for("b"))


async def test_a_request_id_asks_once_however_often_it_is_sent(emulator: Cloud) -> None:
    wanted: dict[str, Any] = {
        "parent": PARENT,
        "queued_resource_id": "q",
        "queued_resource": request_for("a"),
        "request_id": "7f3c1f0e-6a55-4a0a-9a87-0d8c2a8a9d11",
    }
    first = await emulator.tpu.create_queued_resource(wanted, **CALL)
    await reaches(emulator, State.ACTIVE)
    again = await emulator.tpu.create_queued_resource(wanted, **CALL)
    assert again.operation.name == first.operation.name
    with pytest.raises(exceptions.InvalidArgument, match="another request"):
        await emulator.tpu.create_queued_resource(
            {**wanted, "queued_resource": request_for("b")}, **CALL
        )
    with pytest.raises(exceptions.AlreadyExists):
        await emulator.tpu.create_queued_resource({**wanted, "request_id": "other"}, **CALL)
    ending = {"name": NAME, "force": True, "request_id": wanted["request_id"]}
    ended = await emulator.tpu.delete_queued_resource(ending, **CALL)
    await emulator.finish(ended)
    gone = await emulator.tpu.delete_queued_resource(ending, **CALL)
    assert gone.operation.name == ended.operation.name
    assert gone.operation.done
