"""The Cloud TPU API through Google's own client, over gRPC and over REST alike."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import InvalidOperation
from google.cloud import tpu_v2
from google.protobuf import field_mask_pb2
from google.protobuf.json_format import MessageToDict

from tests.emulator_fixture import PARENT, RUNTIME, ZONE, Cloud, node_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

NODE = {"accelerator_type": "v2-8", "runtime_version": RUNTIME}
SERVICE = "google.cloud.tpu.v2.Tpu"


@dataclass
class Api:
    """One of Google's synchronous clients, in threads beside the emulator's loop."""

    client: tpu_v2.TpuClient

    async def call(self, method: str, request: Any, within_s: float = 10.0) -> Any:
        """Call a method and return its answer; of a list, the first page."""
        function: Callable[..., Any] = getattr(self.client, method)
        return await asyncio.to_thread(function, request, timeout=within_s, retry=None)

    async def end(self, operation: Any) -> Any:
        """Wait for the end of an operation."""
        name = {"name": operation.operation.name}
        for _ in range(1_000):
            found = await self.call("get_operation", name)
            if found.done:
                return found
            await asyncio.sleep(0.01)
        raise AssertionError(f"{name} does not end")

    async def create(self, node_id: str, **fields: Any) -> Any:
        """Create a node and wait for the end of the operation."""
        node = tpu_v2.Node(**{**NODE, **fields})
        request = {"parent": PARENT, "node_id": node_id, "node": node}
        return await self.end(await self.call("create_node", request))


@pytest.fixture(params=["grpc", "rest"])
async def api(request: Any, emulator: Cloud) -> AsyncIterator[Api]:
    """The client over one transport."""
    transport = tpu_v2.TpuClient.get_transport_class(request.param)
    if request.param == "grpc":
        made = transport(channel=grpc.insecure_channel(emulator.endpoint))
    else:
        made = transport(
            host=f"http://{emulator.emulator.addresses.rest}",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            url_scheme="http",
        )
    client = tpu_v2.TpuClient(transport=made)
    yield Api(client)
    await asyncio.to_thread(client.transport.close)


def detail(error: exceptions.GoogleAPICallError, field: str) -> Any:
    """Return a field of the first detail: a message over gRPC, JSON over REST."""
    found = error.details[0]
    if not isinstance(found, dict):
        found = MessageToDict(found)
    return found[field]


def read(emulator: Cloud, path: str, **request: Any) -> tuple[int, Any]:
    """Return status and JSON of a raw request; blocks."""
    url = f"http://{emulator.emulator.addresses.rest}{path}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **request), timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


async def test_a_nodes_life(api: Api) -> None:
    created = await api.create("a", labels={"tpudash-run": "x"}, metadata={"k": "v"})
    node = tpu_v2.Node.deserialize(created.response.value)
    assert (node.name, node.state) == (node_name("a"), tpu_v2.Node.State.READY)
    changed = tpu_v2.Node(name=node.name, labels={"b": "c"}, description="new")
    mask = field_mask_pb2.FieldMask(paths=["labels", "description"])
    await api.end(await api.call("update_node", {"node": changed, "update_mask": mask}))
    await api.end(await api.call("stop_node", {"name": node.name}))
    found = await api.call("get_node", {"name": node.name})
    assert found.state == tpu_v2.Node.State.STOPPED
    assert (dict(found.labels), found.description) == ({"b": "c"}, "new")
    await api.end(await api.call("start_node", {"name": node.name}))
    await api.end(await api.call("delete_node", {"name": node.name}))
    with pytest.raises(exceptions.NotFound) as caught:
        await api.call("get_node", {"name": node.name})
    assert "was not found" in caught.value.message
    assert detail(caught.value, "resourceName") == node.name


async def test_metadata_may_be_large(api: Api) -> None:
    script = "#" * (200 * 1024)
    await api.create("a", metadata={f"script-{index}": script for index in range(2)})
    node = await api.call("get_node", {"name": node_name("a")})
    assert node.metadata["script-1"] == script


async def test_pages_and_unreachable_zones(api: Api, emulator: Cloud) -> None:
    for name in ("a", "b", "c"):
        await emulator.create(name)
    await emulator.control.add_fault("unreachable-zone", zone="us-central1-c")
    pager = await api.call("list_nodes", {"parent": "projects/demo/locations/-", "page_size": 2})
    pages = await asyncio.to_thread(lambda: list(pager.pages))
    assert [[node.name for node in page.nodes] for page in pages] == [
        [node_name("a"), node_name("b")],
        [node_name("c")],
    ]
    assert list(pages[0].unreachable) == ["projects/demo/locations/us-central1-c"]


async def test_a_request_and_its_node(api: Api) -> None:
    wanted = {"tpu": {"node_spec": [{"parent": PARENT, "node_id": "n", "node": NODE}]}, "spot": {}}
    request = {"parent": PARENT, "queued_resource_id": "q", "queued_resource": wanted}
    await api.end(await api.call("create_queued_resource", request))
    name = f"{PARENT}/queuedResources/q"
    states = tpu_v2.QueuedResourceState.State
    found = await api.call("get_queued_resource", {"name": name})
    for _ in range(1_000):
        if found.state.state == states.ACTIVE:
            break
        await asyncio.sleep(0.01)
        found = await api.call("get_queued_resource", {"name": name})
    assert found.state.state == states.ACTIVE
    assert found.tpu.node_spec[0].node_id == "n"
    with pytest.raises(exceptions.BadRequest, match="in state ACTIVE"):
        await api.call("delete_queued_resource", {"name": name})
    await api.end(await api.call("delete_queued_resource", {"name": name, "force": True}))


async def test_the_catalogue(api: Api) -> None:
    types = await api.call("list_accelerator_types", {"parent": PARENT})
    assert "v2-8" in {item.type_ for item in types}
    versions = await api.call("list_runtime_versions", {"parent": PARENT})
    assert RUNTIME in {item.version for item in versions}
    places = await api.call("list_locations", {"name": "projects/demo"})
    assert ZONE in {place.location_id for place in places.locations}
    identity = await api.call("generate_service_identity", {"parent": PARENT})
    assert identity.identity.email.endswith("gserviceaccount.com")


async def test_refusals_keep_code_text_and_details(api: Api, emulator: Cloud) -> None:
    limit = "TPUV2sPerProjectPerZoneForTPUAPI"
    await emulator.control.set_quota(ZONE, limit, 0)
    with pytest.raises(exceptions.TooManyRequests, match=f"Quota limit '{limit}'") as caught:
        await api.create("a")
    assert f"'{limit}'" in str(detail(caught.value, "violations"))
    await emulator.control.set_quota(ZONE, limit, None)
    await emulator.control.set_capacity(ZONE, "v2", 0)
    failed = await api.create("a")
    assert failed.error.code == 8
    assert "There is no more capacity in the zone" in failed.error.message


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("401", (exceptions.Unauthorized, InvalidOperation)),
        ("403", exceptions.Forbidden),
        ("404", exceptions.NotFound),
        ("409", exceptions.Conflict),
        ("429", exceptions.TooManyRequests),
        ("503", exceptions.ServiceUnavailable),
    ],
)
async def test_a_fault_by_status(
    api: Api, emulator: Cloud, status: str, error: type[Exception] | tuple[type[Exception], ...]
) -> None:
    await emulator.control.add_fault(status, method="ListNodes", count=1)
    with pytest.raises(error):
        await api.call("list_nodes", {"parent": PARENT})
    assert not list(await api.call("list_nodes", {"parent": PARENT}))


async def test_a_rate_limit_names_itself(api: Api, emulator: Cloud) -> None:
    await emulator.control.add_fault("429", method="ListNodes")
    with pytest.raises(exceptions.TooManyRequests) as caught:
        await api.call("list_nodes", {"parent": PARENT})
    assert caught.value.reason == "RATE_LIMIT_EXCEEDED"


@pytest.mark.parametrize(("kind", "exists"), [("drop", True), ("lost-request", False)])
async def test_lost_connections(api: Api, emulator: Cloud, kind: str, exists: bool) -> None:
    await emulator.control.add_fault(kind, method="CreateNode", count=1)
    with pytest.raises((exceptions.ServiceUnavailable, OSError)):
        await api.create("a")
    assert (node_name("a") in emulator.emulator.world.nodes) is exists


async def test_a_black_hole_stays_open(api: Api, emulator: Cloud) -> None:
    await emulator.control.add_fault("black-hole", method="CreateNode")
    request = {"parent": PARENT, "node_id": "a", "node": tpu_v2.Node(**NODE)}
    with pytest.raises((exceptions.DeadlineExceeded, OSError)):
        await api.call("create_node", request, within_s=0.2)
    assert node_name("a") not in emulator.emulator.world.nodes


async def test_calls_are_counted_alike(api: Api, emulator: Cloud) -> None:
    await api.create("a")
    assert await emulator.control.counters() == {f"{SERVICE}/CreateNode": 1}


async def test_json_as_google_writes_it(emulator: Cloud) -> None:
    await emulator.create("a")
    path = f"/v2/{node_name('a')}"
    _, by_name = await asyncio.to_thread(read, emulator, path)
    assert (by_name["state"], by_name["apiVersion"]) == ("READY", "V2")
    assert by_name["acceleratorConfig"] == {"type": "V2", "topology": "2x2"}
    _, by_number = await asyncio.to_thread(read, emulator, f"{path}?$alt=json;enum-encoding=int")
    assert by_number["state"] == 2
    code, refused = await asyncio.to_thread(read, emulator, f"/v2/{node_name('none')}")
    assert code == refused["error"]["code"] == 404
    assert refused["error"]["status"] == "NOT_FOUND"
    assert refused["error"]["details"][0]["@type"].endswith("google.rpc.ResourceInfo")


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        (f"/v2/{PARENT}/nodes?nodeId=a", b"{", 400),
        (f"/v2/{PARENT}/nodes?nodeId=a", b"[]", 400),
        (f"/v2/{PARENT}/nodes?nodeId=a", b'{"acceleratorTyp": "v2-8"}', 400),
        (f"/v2/{PARENT}/nodes?nodeIdd=a", b"{}", 400),
        (f"/v2/{PARENT}/nodes?pageSize=many", None, 400),
        ("/v2/nowhere", None, 404),
        ("/v9/projects/demo/locations", None, 404),
        ("/", None, 404),
    ],
)
async def test_what_makes_no_sense(
    emulator: Cloud, path: str, data: bytes | None, code: int
) -> None:
    status, body = await asyncio.to_thread(read, emulator, path, data=data)
    assert status == body["error"]["code"] == code
    assert body["error"]["message"]


async def test_fields_of_newer_clients_are_left_out(emulator: Cloud) -> None:
    node = {
        "acceleratorType": "v2-8",
        "runtimeVersion": RUNTIME,
        "schedulingConfig": {"spot": True, "provisioningModel": "SPOT"},
        "upcomingMaintenance": {"type": "SCHEDULED"},
    }
    path, data = f"/v2/{PARENT}/nodes?nodeId=a", json.dumps(node).encode()
    status, operation = await asyncio.to_thread(read, emulator, path, data=data)
    assert status == 200
    assert operation["metadata"]["verb"] == "create"
    assert emulator.emulator.world.nodes.find("a").scheduling == "spot"
