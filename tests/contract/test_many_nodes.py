"""A project of 5,000 nodes: listed and joined in 2 s of one processor's time, all pages of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from google.cloud import tpu_v2

from tests.contract.fake_google import TPU, connected, fake_google
from tests.emulator_fixture import PARENT
from tpudash.store.changes import NodesListed, RequestsListed
from tpudash.store.store import Store

COUNT, PAGE = 5_000, 1_000


def node(number: int) -> tpu_v2.Node:
    return tpu_v2.Node(
        name=f"{PARENT}/nodes/n-{number}",
        state="READY",
        accelerator_type="v2-8",
        labels={"tpudash-run": f"run-{number % 500}", "tpudash-owner": "alice"},
        metadata={"startup-script": "x" * 8_000},
        network_endpoints=[{"ip_address": "10.0.0.1"}],
        queued_resource=f"{PARENT}/queuedResources/q-{number}",
    )


def request(number: int) -> tpu_v2.QueuedResource:
    spec = {"parent": PARENT, "node_id": f"n-{number}", "node": {"accelerator_type": "v2-8"}}
    return tpu_v2.QueuedResource(
        name=f"{PARENT}/queuedResources/q-{number}",
        state={"state": "ACTIVE", "state_initiator": "USER"},
        tpu={"node_spec": [spec]},
    )


def pages(kind: Any, field: str, make: Any) -> list[bytes]:
    """Return the pages of a list as bytes, so that making them is not measured."""
    found = []
    for start in range(0, COUNT, PAGE):
        things = [make(number) for number in range(start, start + PAGE)]
        end = start + PAGE
        token = str(end // PAGE) if end < COUNT else ""
        found.append(kind.serialize(kind(**{field: things, "next_page_token": token})))
    return found


async def test_five_thousand_nodes_and_their_requests() -> None:
    nodes = pages(tpu_v2.ListNodesResponse, "nodes", node)
    requests = pages(tpu_v2.ListQueuedResourcesResponse, "queued_resources", request)
    async with fake_google() as fake:
        fake.on(f"{TPU}/ListNodes", lambda asked: nodes[int(asked.page_token or 0)])
        fake.on(f"{TPU}/ListQueuedResources", lambda asked: requests[int(asked.page_token or 0)])
        async with connected(fake.endpoint) as cloud:
            await cloud.tpu.list_requests()  # imports Google's client, which is not measured
            store = Store()
            began = time.process_time()
            found = await cloud.tpu.list_nodes()
            asked = await cloud.tpu.list_requests()
            store.apply(NodesListed(found, datetime.now(UTC)))
            store.apply(RequestsListed(asked, datetime.now(UTC)))
            seconds = time.process_time() - began
    assert len(store.snapshot.nodes) == len(store.snapshot.requests) == COUNT
    behind = {one.queued_resource for one in store.snapshot.nodes.values()}
    assert behind == set(store.snapshot.requests)
    assert all(one.node_names[0] in store.snapshot.nodes for one in asked.requests)
    assert seconds < 2.0
