"""Nodes through Google's own client: their life, and every refusal word for word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from google.cloud import tpu_v2
from google.protobuf import field_mask_pb2
from google.rpc import error_details_pb2

from tests.emulator_fixture import (
    CALL,
    PARENT,
    RUNTIME,
    Cloud,
    fast_settings,
    node_name,
    running_cloud,
)

if TYPE_CHECKING:
    from pathlib import Path

State = tpu_v2.Node.State
EID = re.compile(r" ?\[EID: 0x[0-9a-f]{16}\]$")


def words(error: exceptions.GoogleAPICallError) -> str:
    """Return an error's text without its id, which must be there."""
    assert EID.search(error.message), error.message
    return EID.sub("", error.message)


async def test_a_node_comes_up_and_goes(emulator: Cloud) -> None:
    operation = await emulator.begin("a", labels={"team": "x"}, scheduling_config={"spot": True})
    assert (await emulator.get("a")).state == State.CREATING
    node = await emulator.finish(operation)
    assert node.state == State.READY
    assert node.health == tpu_v2.Node.Health.HEALTHY
    assert node.api_version == tpu_v2.Node.ApiVersion.V2
    assert node.name == node_name("a")
    assert dict(node.labels) == {"team": "x"}
    assert node.accelerator_config.topology == "2x2"
    assert len(node.network_endpoints) == 1
    assert operation.metadata.verb == "create"
    assert operation.metadata.target == node_name("a")

    deletion = await emulator.tpu.delete_node(name=node_name("a"), **CALL)
    assert (await emulator.get("a")).state == State.DELETING
    await emulator.finish(deletion)
    with pytest.raises(exceptions.NotFound, match=r"Resource '.*nodes/a' was not found"):
        await emulator.get("a")


async def test_a_slice_has_an_address_per_worker(emulator: Cloud) -> None:
    parent = "projects/demo/locations/us-central1-a"
    node = await emulator.create("pod", parent=parent, accelerator_type="v2-32")
    addresses = [endpoint.ip_address for endpoint in node.network_endpoints]
    assert len(set(addresses)) == 4


async def test_wildcard_lists_all_zones_in_pages(emulator: Cloud) -> None:
    other = "projects/demo/locations/europe-west4-a"
    for index in range(3):
        await emulator.create(f"n{index}")
    await emulator.create("far", parent=other)
    request = {"parent": "projects/demo/locations/-", "page_size": 2}
    pager = await emulator.tpu.list_nodes(request, **CALL)
    pages = [[node.name for node in page.nodes] async for page in pager.pages]
    assert [len(page) for page in pages] == [2, 2]
    assert [name for page in pages for name in page] == sorted(
        [node_name("far", other), *map(node_name, ("n0", "n1", "n2"))]
    )


async def test_an_unreachable_zone_is_named(emulator: Cloud) -> None:
    await emulator.create("near")
    await emulator.control.add_fault("unreachable-zone", zone="us-central1-b")
    pager = await emulator.tpu.list_nodes(parent="projects/demo/locations/-", **CALL)
    assert list(pager.unreachable) == [PARENT]
    assert [node.name async for node in pager] == []
    with pytest.raises(exceptions.ServiceUnavailable):
        await emulator.get("near")


async def test_stop_and_start(emulator: Cloud) -> None:
    await emulator.create("a")
    stopped = await emulator.finish(await emulator.tpu.stop_node({"name": node_name("a")}, **CALL))
    assert stopped.state == State.STOPPED
    started = await emulator.finish(await emulator.tpu.start_node({"name": node_name("a")}, **CALL))
    assert started.state == State.READY


async def test_a_pod_cannot_be_stopped(emulator: Cloud) -> None:
    parent = "projects/demo/locations/us-central1-a"
    await emulator.create("pod", parent=parent, accelerator_type="v2-32")
    with pytest.raises(exceptions.InvalidArgument) as caught:
        await emulator.tpu.stop_node({"name": node_name("pod", parent)}, **CALL)
    assert words(caught.value).startswith("Cloud TPU received a bad request. stop is not supported")


async def test_update_changes_only_what_the_mask_names(emulator: Cloud) -> None:
    await emulator.create("a", labels={"old": "1"}, description="before")
    change = tpu_v2.Node(name=node_name("a"), labels={"new": "2"}, description="ignored")
    mask = field_mask_pb2.FieldMask(paths=["labels"])
    node = await emulator.finish(
        await emulator.tpu.update_node(node=change, update_mask=mask, **CALL)
    )
    assert dict(node.labels) == {"new": "2"}
    assert node.description == "before"
    bad = field_mask_pb2.FieldMask(paths=["state"])
    with pytest.raises(exceptions.InvalidArgument, match="update_mask"):
        await emulator.tpu.update_node(node=change, update_mask=bad, **CALL)


async def test_a_name_taken_is_refused_with_the_resource(emulator: Cloud) -> None:
    await emulator.create("a")
    with pytest.raises(exceptions.AlreadyExists) as caught:
        await emulator.begin("a")
    assert caught.value.message == f"Resource '{node_name('a')}' already exists"
    (detail,) = caught.value.details
    assert detail.resource_name == node_name("a")


async def test_quota_is_refused_at_the_call(emulator: Cloud) -> None:
    limit = "TPUV2sPreemptiblePerProjectPerZoneForTPUAPI"
    await emulator.control.set_quota("us-central1-b", limit, 8)
    await emulator.create("a", scheduling_config={"spot": True})
    await emulator.create("b")
    with pytest.raises(exceptions.ResourceExhausted) as caught:
        await emulator.begin("c", scheduling_config={"spot": True})
    assert caught.value.message == (
        f"Quota limit '{limit}' has been exceeded. Limit: 8 in zone us-central1-b."
    )
    (detail,) = caught.value.details
    assert isinstance(detail, error_details_pb2.QuotaFailure)
    assert detail.violations[0].subject.startswith("project:")
    with pytest.raises(exceptions.NotFound):
        await emulator.get("c")


async def test_regional_quota_says_region(emulator: Cloud) -> None:
    limit = "TPUV2sPerProjectPerRegionForTPUAPI"
    await emulator.control.set_quota("us-central1", limit, 0)
    with pytest.raises(exceptions.ResourceExhausted, match="Limit: 0 in region us-central1"):
        await emulator.begin("a")


async def test_stock_out_ends_the_operation_and_rolls_the_node_back(emulator: Cloud) -> None:
    await emulator.control.set_capacity("us-central1-b", "v2-8", 4)
    await emulator.create("a")
    operation = await emulator.begin("b")
    assert (await emulator.get("b")).state == State.CREATING
    with pytest.raises(exceptions.GoogleAPICallError) as caught:
        await emulator.finish(operation)
    status = (await emulator.tpu.get_operation({"name": operation.operation.name}, **CALL)).error
    assert status.code == 8
    assert not status.details
    assert EID.sub("", status.message) == (
        'There is no more capacity in the zone "us-central1-b"; you can try in another zone where'
        " Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions)"
    )
    assert caught.value is not None
    with pytest.raises(exceptions.NotFound):
        await emulator.get("b")
    await emulator.delete("a")
    assert (await emulator.create("b")).state == State.READY


async def test_a_reservation_that_is_too_small(emulator: Cloud) -> None:
    await emulator.control.set_capacity("us-central1-b", "reserved:v2-8", 4)
    await emulator.create("a", scheduling_config={"reserved": True})
    operation = await emulator.begin("b", scheduling_config={"reserved": True})
    with pytest.raises(exceptions.GoogleAPICallError):
        await emulator.finish(operation)
    status = (await emulator.tpu.get_operation({"name": operation.operation.name}, **CALL)).error
    assert status.code == 9
    assert EID.sub("", status.message) == (
        "Insufficient reserved capacity. Contact customer support to increase your reservation."
    )


@pytest.mark.parametrize(
    ("zone", "fields", "text"),
    [
        (
            "asia-south1-a",
            {},
            (
                'Cloud TPU received a bad request. The requested zone "asia-south1-a" is not'
                " supported."
            ),
        ),
        (
            "us-central1-b",
            {"accelerator_type": "v4-8"},
            (
                "Cloud TPU received a bad request. The requested accelerator configuration for"
                ' accelerator type, "v4-8", could not be found in the zonal accelerator'
                ' configurations for "us-central1-b".; the accelerator v4-8 was not found in zone'
                " us-central1-b"
            ),
        ),
        (
            "us-central1-b",
            {"runtime_version": "tpu-vm-tf-1.0"},
            (
                'Cloud TPU received an invalid argument. The field "runtime_version" cannot be'
                ' "tpu-vm-tf-1.0".'
            ),
        ),
    ],
)
async def test_what_is_not_offered_is_refused(
    emulator: Cloud, zone: str, fields: dict[str, str], text: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument) as caught:
        await emulator.begin("a", parent=f"projects/demo/locations/{zone}", **fields)
    assert words(caught.value) == text


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"Upper": "x"}},
        {"description": "x" * 513},
        {"scheduling_config": {"spot": True, "preemptible": True}},
        {"runtime_version": ""},
    ],
)
async def test_bad_fields_are_refused(emulator: Cloud, fields: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await emulator.begin("a", **fields)


async def test_verbs_are_refused_in_the_wrong_state(emulator: Cloud) -> None:
    await emulator.control.add_fault("operation-never-ends", method="create")
    await emulator.begin("a")
    with pytest.raises(exceptions.InvalidArgument) as caught:
        await emulator.tpu.delete_node(name=node_name("a"), **CALL)
    assert words(caught.value) == (
        "Cloud TPU received a bad request. delete is not supported while in state CREATING"
    )


async def test_preempted_while_creating(emulator: Cloud) -> None:
    await emulator.control.add_fault("operation-never-ends", method="create")
    operation = await emulator.begin("a", scheduling_config={"spot": True})
    assert await emulator.control.preempt("a", 0) == "PREEMPTED"
    await emulator.control.clear_faults()
    with pytest.raises(exceptions.GoogleAPICallError):
        await emulator.finish(operation)
    status = (await emulator.tpu.get_operation({"name": operation.operation.name}, **CALL)).error
    assert status.code == 3
    assert EID.sub("", status.message) == (
        "Cloud TPU received a bad request. update is not supported while in state PREEMPTED"
    )
    assert (await emulator.get("a")).state == State.PREEMPTED


async def test_without_tensorflow_its_images_are_refused(tmp_path: Path) -> None:
    settings = fast_settings(tmp_path / "emulator")
    async with running_cloud(settings, has_tensorflow=lambda: False) as cloud:
        with pytest.raises(exceptions.FailedPrecondition) as caught:
            await cloud.begin("a", runtime_version=RUNTIME)
        assert "pip install 'tpudash[trainer]'" in caught.value.message
        assert (await cloud.create("b", runtime_version="tpu-ubuntu2204-base")).state == State.READY


async def test_catalogue_of_a_zone(emulator: Cloud) -> None:
    types = await emulator.tpu.list_accelerator_types(parent=PARENT, **CALL)
    assert "v2-8" in [item.type_ async for item in types]
    versions = await emulator.tpu.list_runtime_versions(parent=PARENT, **CALL)
    assert RUNTIME in [item.version async for item in versions]
    one = await emulator.tpu.get_runtime_version(name=f"{PARENT}/runtimeVersions/{RUNTIME}", **CALL)
    assert one.version == RUNTIME
    with pytest.raises(exceptions.NotFound):
        await emulator.tpu.get_accelerator_type(name=f"{PARENT}/acceleratorTypes/v4-8", **CALL)
    zones = await emulator.tpu.list_locations({"name": "projects/demo"}, **CALL)
    assert PARENT in [item.name for item in zones.locations]


async def test_every_rpc_of_the_service_is_answered(emulator: Cloud) -> None:
    """An RPC without an implementation would answer UNIMPLEMENTED."""
    requests = {
        "get_guest_attributes": {"name": node_name("none")},
        "generate_service_identity": {"parent": PARENT},
        "reset_queued_resource": {"name": f"{PARENT}/queuedResources/none"},
        "get_operation": {"name": f"{PARENT}/operations/none"},
        "cancel_operation": {"name": f"{PARENT}/operations/none"},
        "delete_operation": {"name": f"{PARENT}/operations/none"},
    }
    wrapped = emulator.tpu.transport._wrapped_methods
    assert len(wrapped) >= 19
    for name, request in requests.items():
        try:
            await getattr(emulator.tpu, name)(request, **CALL)
        except exceptions.NotFound:
            continue
        assert name == "generate_service_identity"


async def test_counters_see_what_changes_resources(emulator: Cloud) -> None:
    await emulator.create("a")
    await emulator.get("a")
    assert await emulator.control.counters(reset=True) == {"google.cloud.tpu.v2.Tpu/CreateNode": 1}
    assert await emulator.control.counters() == {}
