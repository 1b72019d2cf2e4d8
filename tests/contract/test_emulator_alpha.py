"""v2alpha1 of the Cloud TPU API: other field numbers, and maintenance."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc.aio
import pytest
from google.api_core import exceptions
from google.cloud import tpu_v2alpha1

from tests.emulator_fixture import CALL, PARENT, RUNTIME, ZONE, Cloud, client, eventually, node_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NODE = {"accelerator_type": "v2-8", "runtime_version": RUNTIME}


@pytest.fixture
async def alpha(emulator: Cloud) -> AsyncIterator[Any]:
    """Google's client of v2alpha1."""
    channel = grpc.aio.insecure_channel(emulator.endpoint)
    yield client(tpu_v2alpha1.TpuAsyncClient, channel)
    await channel.close(None)


async def test_a_node_of_one_version_is_the_others_too(emulator: Cloud, alpha: Any) -> None:
    node = tpu_v2alpha1.Node(
        accelerator_config={"type_": "V2", "topology": "2x2"},
        runtime_version=RUNTIME,
        labels={"a": "b"},
        metadata={"k": "v"},
    )
    request = {"parent": PARENT, "node_id": "a", "node": node}
    operation = await alpha.create_node(request, **CALL)
    made = await operation.result(timeout=10)
    assert isinstance(made, tpu_v2alpha1.Node)
    assert made.api_version == tpu_v2alpha1.Node.ApiVersion.V2_ALPHA1
    stable = await emulator.get("a")
    assert (dict(stable.labels), dict(stable.metadata)) == ({"a": "b"}, {"k": "v"})
    assert stable.accelerator_config.topology == "2x2"
    listed = [item async for item in await alpha.list_nodes(parent=PARENT, **CALL)]
    assert [item.accelerator_config.topology for item in listed] == ["2x2"]
    renamed = tpu_v2alpha1.Node(name=node_name("a"), labels={"c": "d"})
    mask = {"paths": ["labels"]}
    await (await alpha.update_node({"node": renamed, "update_mask": mask}, **CALL)).result(10)
    assert dict((await emulator.get("a")).labels) == {"c": "d"}
    await (await alpha.delete_node({"name": node_name("a")}, **CALL)).result(10)
    with pytest.raises(exceptions.NotFound):
        await alpha.get_node(name=node_name("a"), **CALL)


async def test_a_request_id_makes_and_deletes_a_node_once(emulator: Cloud, alpha: Any) -> None:
    wanted = {"parent": PARENT, "node_id": "a", "node": NODE, "request_id": "once"}
    operations = [await alpha.create_node(wanted, **CALL) for _ in range(2)]
    assert len({operation.operation.name for operation in operations}) == 1
    made = await operations[1].result(timeout=10)
    assert isinstance(made, tpu_v2alpha1.Node)
    ending = {"name": node_name("a"), "request_id": "once"}
    await (await alpha.delete_node(ending, **CALL)).result(10)
    await (await alpha.delete_node(ending, **CALL)).result(10)
    assert not len(emulator.emulator.world.nodes)


async def test_best_effort_requests_of_several_nodes(emulator: Cloud, alpha: Any) -> None:
    spec = {
        "parent": PARENT,
        "multi_node_params": {"node_count": 2, "node_id_prefix": "m"},
        "node": NODE,
    }
    wanted = {"tpu": {"node_spec": [spec]}, "best_effort": {}}
    request = {"parent": PARENT, "queued_resource_id": "q", "queued_resource": wanted}
    await (await alpha.create_queued_resource(request, **CALL)).result(10)
    nodes = emulator.emulator.world.nodes
    await eventually(lambda: len(nodes) == 2, "both nodes are made")
    assert {record.name.id: record.scheduling for record in nodes} == {"m-0": "spot", "m-1": "spot"}
    name = f"{PARENT}/queuedResources/q"
    for shown in (
        await alpha.get_queued_resource(name=name, **CALL),
        *[item async for item in await alpha.list_queued_resources(parent=PARENT, **CALL)],
    ):
        slices = shown.tpu.node_spec[0].multi_node_params
        assert (slices.node_count, slices.node_id_prefix) == (2, "m")
    gone = await alpha.delete_queued_resource({"name": name, "force": True}, **CALL)
    assert (await gone.result(10)).name == name


async def test_announced_maintenance_is_seen_and_hurried(emulator: Cloud, alpha: Any) -> None:
    await emulator.create("a")
    with pytest.raises(exceptions.FailedPrecondition, match="no pending maintenance"):
        await alpha.perform_maintenance({"name": node_name("a")}, **CALL)
    await emulator.control.maintenance("a", notice_s=3600, duration_s=0.01, wait=False)
    seen = (await alpha.get_node(name=node_name("a"), **CALL)).upcoming_maintenance
    kinds = tpu_v2alpha1.UpcomingMaintenance
    assert seen.type_ == kinds.MaintenanceType.SCHEDULED
    assert seen.maintenance_status == kinds.MaintenanceStatus.PENDING
    start, end = map(datetime.fromisoformat, (seen.window_start_time, seen.window_end_time))
    assert end - start == timedelta(seconds=0.01)
    ended = await (await alpha.perform_maintenance({"name": node_name("a")}, **CALL)).result(10)
    assert ended.state == tpu_v2alpha1.Node.State.READY
    assert not (await alpha.get_node(name=node_name("a"), **CALL)).upcoming_maintenance


async def test_simulated_maintenance(emulator: Cloud, alpha: Any) -> None:
    await emulator.create("a")
    request = {"name": node_name("a"), "worker_ids": ["0"]}
    operation = await alpha.simulate_maintenance_event(request, **CALL)
    assert (await operation.result(10)).state == tpu_v2alpha1.Node.State.READY
    assert operation.metadata.verb == "simulateMaintenanceEvent"
    lives = emulator.emulator.world.nodes.find("a").life
    assert lives > 2  # created, taken down, brought back
    with pytest.raises(exceptions.InvalidArgument, match="not a worker"):
        await alpha.simulate_maintenance_event(
            {"name": node_name("a"), "worker_ids": ["7"]}, **CALL
        )


async def test_reservations(emulator: Cloud, alpha: Any) -> None:
    await emulator.control.set_capacity(ZONE, "reserved:v2-8", 8)
    await emulator.create("a", scheduling_config={"reserved": True})
    found = [item async for item in await alpha.list_reservations({"parent": PARENT}, **CALL)]
    assert [item.name for item in found] == [f"{PARENT}/reservations/v2-8"]
    standard = found[0].standard
    assert (standard.size, standard.usage.total, standard.resource_type) == (8, 4, "v2-8")


async def test_over_rest(emulator: Cloud) -> None:
    await emulator.create("a")
    await emulator.control.maintenance("a", notice_s=3600, duration_s=1, wait=False)

    def read(path: str) -> Any:
        url = f"http://{emulator.emulator.addresses.rest}{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    node = await asyncio.to_thread(read, f"/v2alpha1/{node_name('a')}")
    assert node["upcomingMaintenance"]["maintenanceStatus"] == "PENDING"
    assert node["apiVersion"] == "V2_ALPHA1"
    (listed,) = (await asyncio.to_thread(read, f"/v2/{PARENT}/nodes"))["nodes"]
    stable = await asyncio.to_thread(read, f"/v2/{node_name('a')}")
    assert stable["upcomingMaintenance"] == node["upcomingMaintenance"]
    assert listed["upcomingMaintenance"] == node["upcomingMaintenance"]
    operations = await asyncio.to_thread(read, f"/v2alpha1/{PARENT}/operations")
    kind = operations["operations"][0]["response"]["@type"]
    assert kind.endswith("google.cloud.tpu.v2alpha1.Node")
    types = await asyncio.to_thread(read, f"/v1/{PARENT}/acceleratorTypes")
    assert {"name": f"{PARENT}/acceleratorTypes/v2-8", "type": "v2-8"} in types["acceleratorTypes"]
    versions = await asyncio.to_thread(read, f"/v1/{PARENT}/tensorflowVersions")
    assert "2.19.0" in {item["version"] for item in versions["tensorflowVersions"]}
    with pytest.raises(urllib.error.HTTPError, match="404"):
        await asyncio.to_thread(read, f"/v1/{node_name('a')}")


async def test_addresses_go_and_come_with_the_setting(emulator: Cloud, alpha: Any) -> None:
    await emulator.create("a", network_config={"enable_external_ips": True})
    assert (await emulator.get("a")).network_endpoints[0].access_config.external_ip
    closed = tpu_v2alpha1.Node(name=node_name("a"), network_config={"enable_external_ips": False})
    mask = {"paths": ["network_config.enable_external_ips"]}
    await (await alpha.update_node({"node": closed, "update_mask": mask}, **CALL)).result(10)
    endpoint = (await emulator.get("a")).network_endpoints[0]
    assert endpoint.ip_address
    assert not endpoint.access_config.external_ip
