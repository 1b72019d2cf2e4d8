"""Faults on request, seen by Google's own client, and what the control service refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from google.api_core import exceptions
from google.cloud import tpu_v2
from google.rpc import error_details_pb2

from tests.emulator_fixture import (
    CALL,
    PARENT,
    RUNTIME,
    ZONE,
    Cloud,
    fast_settings,
    node_name,
    running_cloud,
)
from tpudash.emulator.identifiers import ResourceName
from tpudash.errors import NotFoundError, UnreachableError, UsageError
from tpudash.gateways.emulator_control import EmulatorControl

if TYPE_CHECKING:
    from pathlib import Path

TPU = "google.cloud.tpu.v2.Tpu"


async def test_a_refusal_carries_code_text_and_details(emulator: Cloud) -> None:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
    }
    await emulator.control.add_fault(
        "error", method=f"{TPU}/*", code="PERMISSION_DENIED", message="off", details=[info]
    )
    with pytest.raises(exceptions.PermissionDenied) as caught:
        await emulator.tpu.list_nodes(parent=PARENT, **CALL)
    assert caught.value.reason == "SERVICE_DISABLED"
    assert isinstance(caught.value.details[0], error_details_pb2.ErrorInfo)
    assert await emulator.control.clear_faults() == 1
    await emulator.tpu.list_nodes(parent=PARENT, **CALL)


async def test_a_fault_ends_when_its_count_is_used_up(emulator: Cloud) -> None:
    await emulator.control.add_fault("error", method=f"{TPU}/ListNodes", count=2)
    for _ in range(2):
        with pytest.raises(exceptions.ServiceUnavailable):
            await emulator.tpu.list_nodes(parent=PARENT, **CALL)
    await emulator.tpu.list_nodes(parent=PARENT, **CALL)
    assert await emulator.control.list_faults() == []


async def test_a_dropped_answer_leaves_the_deed_done(emulator: Cloud) -> None:
    await emulator.control.add_fault("drop", method=f"{TPU}/CreateNode", count=1)
    with pytest.raises(exceptions.ServiceUnavailable):
        await emulator.begin("a")
    assert (await emulator.get("a")).name == node_name("a")


async def test_a_black_hole_never_answers(emulator: Cloud) -> None:
    await emulator.control.add_fault("black-hole", method=f"{TPU}/CreateNode")
    request = {"parent": PARENT, "node_id": "a"}
    with pytest.raises(exceptions.DeadlineExceeded):
        await emulator.tpu.create_node(request, timeout=0.2, retry=None)
    with pytest.raises(exceptions.NotFound):
        await emulator.get("a")


async def test_latency_delays_the_answer(emulator: Cloud) -> None:
    await emulator.control.add_fault("latency", method=f"{TPU}/ListNodes", latency_s=0.3)
    with pytest.raises(exceptions.DeadlineExceeded):
        await emulator.tpu.list_nodes(parent=PARENT, timeout=0.1, retry=None)
    await emulator.tpu.list_nodes(parent=PARENT, **CALL)


async def test_operations_can_fail_or_hang(emulator: Cloud) -> None:
    await emulator.control.add_fault(
        "operation-fails", method="create", code="INTERNAL", message="boom", count=1
    )
    with pytest.raises(exceptions.GoogleAPICallError, match="boom"):
        await emulator.create("a")
    with pytest.raises(exceptions.NotFound):
        await emulator.get("a")
    await emulator.control.add_fault("operation-never-ends", method="create", zone=ZONE)
    operation = await emulator.begin("b")
    await emulator.create("b", parent="projects/demo/locations/us-central1-c")
    name = operation.operation.name
    assert not (await emulator.tpu.get_operation({"name": name}, **CALL)).done
    await emulator.tpu.cancel_operation({"name": name}, **CALL)
    await emulator.control.clear_faults()
    await emulator.finish(operation)


async def test_control_refuses_what_makes_no_sense(emulator: Cloud) -> None:
    with pytest.raises(NotFoundError):
        await emulator.control.preempt("none")
    await emulator.create("fixed")
    with pytest.raises(UsageError, match="on-demand"):
        await emulator.control.preempt("fixed")
    with pytest.raises(UsageError, match="on-demand"):
        await emulator.control.preempt("fixed", wait=False)
    with pytest.raises(UsageError):
        await emulator.control.add_fault("nonsense")
    with pytest.raises(UsageError):
        await emulator.control.set_capacity("nowhere", "v2-8", 1)


async def test_control_without_an_emulator() -> None:
    async with EmulatorControl("127.0.0.1:1") as control:
        with pytest.raises(UnreachableError, match="no emulator answers"):
            await control.describe()


async def test_five_thousand_nodes_are_listed_without_processes(tmp_path: Path) -> None:
    async with running_cloud(fast_settings(tmp_path / "emulator", create_s=0.0)) as cloud:
        world = cloud.emulator.world
        node = tpu_v2.Node.pb()(accelerator_type="v2-8", runtime_version=RUNTIME)
        for index in range(5_000):
            world.lifecycle.create(ResourceName("demo", ZONE, "nodes", f"n{index}"), node)
            if index % 250 == 0:
                await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        pager = await cloud.tpu.list_nodes(parent="projects/demo/locations/-", **CALL)
        assert len([node async for node in pager]) == 5_000
        assert loop.time() - began < 5
