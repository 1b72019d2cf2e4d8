"""The TPU gateway against the emulator, and against servers that behave badly."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2, tpu_v2alpha1
from google.longrunning import operations_pb2
from google.rpc import error_details_pb2

from tests.contract.fake_google import (
    TPU,
    FakeGoogle,
    connected,
    fake_google,
    never,
    node,
    quota_failure,
    raw_class,
    refusal,
)
from tests.emulator_fixture import RUNTIME, ZONE, node_name
from tpudash.diagnostics.classifier import classify
from tpudash.domain.failure import ErrorClass
from tpudash.domain.node import NodeTemplate, Scheduling
from tpudash.errors import (
    CapacityError,
    NotAllowedError,
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
)
from tpudash.gateways import tpu as tpu_module
from tpudash.gateways.convert_maintenance import maintenance_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.emulator_fixture import Cloud as Emulator
    from tpudash.gateways.protocols import Cloud, CloudOperation

LIST = f"{TPU}/ListNodes"
GET = f"{TPU}/GetNode"
CREATE = f"{TPU}/CreateNode"
DELETE = f"{TPU}/DeleteNode"
LOCATIONS = "/google.cloud.location.Locations/ListLocations"
TEMPLATE = NodeTemplate("v2-8", RUNTIME, Scheduling.SPOT, labels={"tpudash-run": "demo"})


@pytest.fixture
async def cloud(emulator: Emulator) -> AsyncIterator[Cloud]:
    async with connected(emulator.endpoint) as found:
        yield found


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        yield server


async def ended(cloud: Cloud, operation: CloudOperation) -> CloudOperation:
    """Return the operation when it has ended."""
    async with asyncio.timeout(10):
        while not operation.done:
            operation = await cloud.tpu.get_operation(operation.name)
    return operation


async def test_a_node_from_creation_to_its_end(cloud: Cloud) -> None:
    template = NodeTemplate(
        "v2-8",
        RUNTIME,
        Scheduling.SPOT,
        labels={"tpudash-run": "demo", "tpudash-attempt": "1"},
        metadata={"tpudash-spec": '{"run": "demo"}'},
        description="a test",
        tags=("one",),
        external_ips=False,
    )
    operation = await cloud.tpu.create_node(ZONE, "demo-1", template)
    assert (operation.verb, operation.target) == ("create", node_name("demo-1"))
    done = await ended(cloud, operation)
    assert done.error is None
    assert done.end_time is not None

    (node,) = (await cloud.tpu.list_nodes()).nodes
    assert node == await cloud.tpu.get_node(node_name("demo-1"))
    assert (node.state, node.scheduling, node.run) == ("READY", Scheduling.SPOT, "demo")
    assert node.metadata["tpudash-spec"] == '{"run": "demo"}'
    assert [worker.index for worker in node.workers] == [0]
    assert node.create_time is not None
    assert node.raw["description"] == "a test"
    assert node.raw["tags"] == ["one"]
    assert "enableExternalIps" not in node.raw["networkConfig"]

    await ended(cloud, await cloud.tpu.delete_node(node.name))
    with pytest.raises(NotFoundError) as caught:
        await cloud.tpu.get_node(node.name)
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.GONE
    assert (await cloud.tpu.list_nodes()).nodes == ()


async def test_announced_maintenance(emulator: Emulator, cloud: Cloud) -> None:
    await ended(cloud, await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE))
    assert await cloud.tpu.list_maintenance() == {}
    await emulator.control.maintenance("demo-1", notice_s=600, wait=False)
    announced = (await cloud.tpu.list_maintenance())[node_name("demo-1")]
    assert (announced.kind, announced.status) in {
        ("SCHEDULED", "PENDING"),
        ("UNSCHEDULED", "PENDING"),
    }
    assert announced.window_start is not None
    assert announced.window_start > datetime.now(UTC)


async def test_an_unknown_kind_of_maintenance_is_shown_by_its_number() -> None:
    node = raw_class(tpu_v2alpha1.Node)(name="n")
    node.upcoming_maintenance.type_ = 17
    node.upcoming_maintenance.maintenance_status = 23
    node.upcoming_maintenance.window_start_time = "some day"
    ((name, announced),) = maintenance_of([node])
    assert (name, announced.kind, announced.status) == ("n", "17", "23")
    assert announced.window_start is None


async def test_what_a_zone_offers(cloud: Cloud) -> None:
    assert ZONE in await cloud.tpu.list_zones()
    assert "v2-8" in await cloud.tpu.list_accelerator_types(ZONE)
    assert RUNTIME in await cloud.tpu.list_runtime_versions(ZONE)


async def test_a_name_that_is_taken(cloud: Cloud) -> None:
    await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
    with pytest.raises(OperationFailedError) as caught:
        await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.NAME_TAKEN


async def test_a_quota_refuses_the_call(emulator: Emulator, cloud: Cloud) -> None:
    name = "TPUV2sPreemptiblePerProjectPerZoneForTPUAPI"
    await emulator.control.set_quota(ZONE, name, 0)
    with pytest.raises(CapacityError) as caught:
        await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
    failure = caught.value.failure
    assert failure is not None
    assert failure.error_class is ErrorClass.QUOTA
    assert (failure.scope.quota, failure.scope.zone, failure.scope.limit) == (name, ZONE, 0)
    assert "won't help" in caught.value.hint


async def test_a_stock_out_ends_the_operation(emulator: Emulator, cloud: Cloud) -> None:
    await emulator.control.set_capacity(ZONE, "v2-8", 0)
    operation = await ended(cloud, await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE))
    assert operation.error is not None
    failure = classify(operation.error)
    assert failure.error_class is ErrorClass.STOCKOUT
    assert failure.scope.zone == ZONE
    assert failure.eid is not None


async def test_zones_that_do_not_answer_are_named(emulator: Emulator, cloud: Cloud) -> None:
    await ended(cloud, await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE))
    await emulator.control.add_fault("unreachable-zone", zone="europe-west4-a")
    listing = await cloud.tpu.list_nodes()
    assert listing.unreachable == ("europe-west4-a",)
    assert [node.node_id for node in listing.nodes] == ["demo-1"]


@pytest.mark.parametrize(
    ("code", "message", "kind", "error_class"),
    [
        ("UNAVAILABLE", "node was not found", UnreachableError, None),
        ("DEADLINE_EXCEEDED", "late", UnreachableError, ErrorClass.UNKNOWN_OUTCOME),
        ("INTERNAL", "an internal error has occurred", UnreachableError, ErrorClass.INTERNAL),
        ("UNAUTHENTICATED", "no", NotAllowedError, ErrorClass.AUTH_EXPIRED),
        ("PERMISSION_DENIED", "no", NotAllowedError, ErrorClass.PERMISSION),
        ("NOT_FOUND", "Resource 'x' was not found", NotFoundError, ErrorClass.GONE),
        (
            "NOT_FOUND",
            "Location us-east1-d is not found or access is unauthorized.",
            NotAllowedError,
            ErrorClass.LOCATION,
        ),
        ("UNIMPLEMENTED", "Method not found!", OperationFailedError, ErrorClass.UNCLASSIFIED),
    ],
)
async def test_only_a_definite_answer_is_not_found(
    fake: FakeGoogle,
    code: str,
    message: str,
    kind: type[TpudashError],
    error_class: ErrorClass | None,
) -> None:
    def refuse(_: Any) -> Any:
        raise refusal(code, message)

    fake.on(GET, refuse)
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(TpudashError) as caught:
            await cloud.tpu.get_node(node_name("x"))
    assert type(caught.value) is kind
    assert caught.value.failure is not None
    if error_class is not None:
        assert caught.value.failure.error_class is error_class


async def test_a_question_is_asked_again_after_a_fault_that_passes(fake: FakeGoogle) -> None:
    def answer(_: Any) -> Any:
        if fake.calls[GET] < 3:
            raise refusal("UNAVAILABLE", "The service is currently unavailable.")
        return node(node_name("x"), state=2)

    fake.on(GET, answer)
    async with connected(fake.endpoint) as cloud:
        assert (await cloud.tpu.get_node(node_name("x"))).state == "READY"
    assert fake.calls[GET] == 3


async def test_a_question_that_was_refused_is_not_asked_again(fake: FakeGoogle) -> None:
    def refuse(_: Any) -> Any:
        raise refusal("PERMISSION_DENIED", "no")

    fake.on(GET, refuse)
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(NotAllowedError):
            await cloud.tpu.get_node(node_name("x"))
    assert fake.calls[GET] == 1


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN"])
async def test_a_change_without_a_definite_answer_is_made_once(fake: FakeGoogle, code: str) -> None:
    def refuse(_: Any) -> Any:
        raise refusal(code, "Socket closed")

    fake.on(CREATE, refuse)
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(OutcomeUnknownError) as caught:
            await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
    assert caught.value.failure is not None
    assert caught.value.failure.error_class is ErrorClass.UNKNOWN_OUTCOME
    assert fake.calls[CREATE] == 1


async def test_a_change_into_a_black_hole(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_module, "CHANGE_S", 0.2)
    fake.on(DELETE, never)
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(OutcomeUnknownError):
            await cloud.tpu.delete_node(node_name("x"))
    assert fake.calls[DELETE] == 1


async def test_a_question_into_a_black_hole_ends_in_time(
    fake: FakeGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tpu_module, "READ_S", 0.2)
    fake.on(GET, never)
    async with connected(fake.endpoint) as cloud:
        start = time.monotonic()
        with pytest.raises(UnreachableError):
            await cloud.tpu.get_node(node_name("x"))
    assert time.monotonic() - start < 2
    assert fake.calls[GET] == 1


async def test_a_change_that_was_never_sent_is_not_in_doubt(fake: FakeGoogle) -> None:
    async with fake_google() as other:
        other.on(CREATE, lambda _: operations_pb2.Operation(name="x"))
        connection = connected(other.endpoint)
        cloud = await connection.__aenter__()
    try:
        with pytest.raises(TpudashError) as caught:
            await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
        if isinstance(caught.value, OutcomeUnknownError):
            # The connection that was just lost was still tried once.
            with pytest.raises(TpudashError) as caught:
                await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
        assert isinstance(caught.value, UnreachableError)
        assert "nothing was sent" in caught.value.title
    finally:
        await connection.__aexit__(None, None, None)


async def test_details_of_an_error_reach_the_classifier(fake: FakeGoogle) -> None:
    info = error_details_pb2.ErrorInfo(
        reason="RATE_LIMIT_EXCEEDED",
        metadata={"quota_limit": "CreateNodePerMinute", "quota_limit_value": "60"},
    )

    def by_rate(_: Any) -> Any:
        raise refusal("RESOURCE_EXHAUSTED", "Slow down.", info)

    def by_quota(_: Any) -> Any:
        raise refusal("RESOURCE_EXHAUSTED", "No.", quota_failure("Limit: 0 in region us-east1"))

    async with connected(fake.endpoint) as cloud:
        for handler, expected in ((by_rate, ErrorClass.RATE_LIMIT), (by_quota, ErrorClass.QUOTA)):
            fake.on(CREATE, handler)
            with pytest.raises(CapacityError) as caught:
                await cloud.tpu.create_node(ZONE, "demo-1", TEMPLATE)
            assert caught.value.failure is not None
            assert caught.value.failure.error_class is expected


async def test_an_operation_of_unknown_make_is_read(fake: FakeGoogle) -> None:
    operation = operations_pb2.Operation(name="operations/x", done=True)
    operation.metadata.type_url = "type.googleapis.com/some.Other"
    operation.metadata.value = b"\xff\xff"
    operation.error.code = 99
    operation.error.message = "odd"
    operation.error.details.add(type_url="type.googleapis.com/some.Detail", value=b"\xff")
    fake.on("/google.longrunning.Operations/GetOperation", lambda _: operation)
    async with connected(fake.endpoint) as cloud:
        found = await cloud.tpu.get_operation("operations/x")
    assert found.done
    assert found.error is not None
    assert (found.error.code, found.error.message) == ("99", "odd")


async def test_requests_with_their_nodes(fake: FakeGoogle) -> None:
    response = raw_class(tpu_v2.ListQueuedResourcesResponse)()
    request = response.queued_resources.add(name="projects/p/locations/z/queuedResources/q")
    request.state.state = 4
    request.state.state_initiator = 2
    request.state.failed_data.error.message = "no"
    spec = request.tpu.node_spec.add(parent="projects/p/locations/z", node_id="one")
    spec.node.accelerator_type = "v2-8"
    spec.node.labels["tpudash-run"] = "demo"
    several = request.tpu.node_spec.add(parent="projects/p/locations/z")
    several.multislice_params.node_count = 2
    several.multislice_params.node_id_prefix = "pre"
    response.queued_resources.add(name="projects/p/locations/z/queuedResources/r").state.state = 50
    fake.on(f"{TPU}/ListQueuedResources", lambda _: response)
    async with connected(fake.endpoint) as cloud:
        first, second = (await cloud.tpu.list_requests()).requests
    assert (first.state, first.initiator, first.failure) == ("FAILED", "SERVICE", "no")
    assert [name.rpartition("/")[2] for name in first.node_names] == ["one", "pre-0", "pre-1"]
    assert first.labels == {"tpudash-run": "demo"}
    assert (second.state, second.initiator, second.failure) == ("50", None, None)
