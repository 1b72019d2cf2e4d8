"""Lists of the TPU API: all pages, all zones, and what the protos do not know."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2

from tests.contract.fake_google import (
    TPU,
    FakeGoogle,
    connected,
    fake_google,
    node,
    page,
    raw_class,
    refusal,
    zones,
)
from tests.emulator_fixture import ZONE, node_name
from tpudash.errors import (
    NotAllowedError,
    UnreachableError,
)
from tpudash.gateways.everywhere import ZONES_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


LIST = f"{TPU}/ListNodes"
LOCATIONS = "/google.cloud.location.Locations/ListLocations"


@pytest.fixture
async def fake() -> AsyncIterator[FakeGoogle]:
    async with fake_google() as server:
        yield server


async def test_all_pages_are_read_and_a_node_on_two_of_them_is_one(fake: FakeGoogle) -> None:
    pages = {
        "": page("a", "b", token="1", unreachable=("projects/demo/locations/us-east1-b",)),
        "1": page(token="2"),
        "2": page("b", "c", unreachable=("us-east1-b", "us-west1-c")),
    }
    fake.on(LIST, lambda request: pages[request.page_token])
    async with connected(fake.endpoint) as cloud:
        listing = await cloud.tpu.list_nodes()
    assert [item.node_id for item in listing.nodes] == ["a", "b", "c"]
    assert listing.unreachable == ("us-east1-b", "us-west1-c")


async def test_half_a_list_is_never_taken_for_the_whole(fake: FakeGoogle) -> None:
    def answer(request: Any) -> Any:
        if request.page_token:
            raise refusal("UNAVAILABLE", "The service is currently unavailable.")
        return page("a", token="1")

    fake.on(LIST, answer)
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(UnreachableError):
            await cloud.tpu.list_nodes(ZONE)


async def test_pages_without_end_are_an_error(fake: FakeGoogle) -> None:
    fake.on(LIST, lambda _: page("a", token="again"))
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(UnreachableError):
            await cloud.tpu.list_nodes(ZONE)
    assert fake.calls[LIST] < 5


async def test_where_the_wildcard_is_refused_each_zone_is_asked(fake: FakeGoogle) -> None:
    names = [f"us-east{number}-b" for number in range(1, 31)]
    active = 0
    most = 0

    async def answer(request: Any) -> Any:
        nonlocal active, most
        zone = request.parent.rpartition("/")[2]
        if zone == "-":
            raise refusal("INVALID_ARGUMENT", "Location - is invalid")
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.01)
        active -= 1
        if zone == names[3]:
            raise refusal("UNAVAILABLE", "The service is currently unavailable.")
        return page(f"n-{zone}")

    fake.on(LIST, answer)
    fake.on(LOCATIONS, lambda _: zones(*names))
    async with connected(fake.endpoint) as cloud:
        listing = await cloud.tpu.list_nodes()
        assert len(listing.nodes) == 29
        assert listing.unreachable == (names[3],)
        assert 1 < most <= ZONES_AT_ONCE
        before = fake.calls[LIST]
        await cloud.tpu.list_nodes()
        # Neither the wildcard nor the list of zones is asked for again so soon.
        assert fake.calls[LIST] - before == 30 + 2
        assert fake.calls[LOCATIONS] == 1


async def test_a_refusal_that_holds_everywhere_stays_one(fake: FakeGoogle) -> None:
    def refuse(_: Any) -> Any:
        raise refusal("PERMISSION_DENIED", "Permission 'tpu.nodes.list' denied on 'projects/demo'")

    fake.on(LIST, refuse)
    fake.on(LOCATIONS, lambda _: zones("us-east1-b", "us-east1-c"))
    async with connected(fake.endpoint) as cloud:
        with pytest.raises(NotAllowedError) as caught:
            await cloud.tpu.list_nodes()
    assert "tpu.nodes.list" in caught.value.hint


async def test_what_the_protos_do_not_know_survives(fake: FakeGoogle) -> None:
    odd = node(node_name("odd"), state=77, health=9, create_time={"seconds": 10**15})
    odd.symptoms.add(symptom_type=42, worker_id="3")
    odd.network_endpoints.add(ip_address="10.0.0.1")
    odd.accelerator_config.type_ = 99
    odd.accelerator_config.topology = "4x4x4"
    fake.on(
        LIST,
        lambda _: raw_class(tpu_v2.ListNodesResponse)(nodes=[odd, node("nonsense"), node("")]),
    )
    async with connected(fake.endpoint) as cloud:
        (found,) = (await cloud.tpu.list_nodes()).nodes
    assert (found.state, found.health) == ("77", "9")
    assert found.symptoms[0].kind == "42"
    assert found.accelerator_type == "99 4x4x4"
    assert found.create_time is None
    assert found.raw["state"] == 77


async def test_five_thousand_nodes_are_read_quickly(fake: FakeGoogle) -> None:
    def make(number: int) -> Any:
        found = node(node_name(f"n-{number}"), state=2, accelerator_type="v2-8")
        found.create_time.seconds = 1_790_000_000 + number
        found.labels["tpudash-run"] = f"run-{number}"
        found.metadata["startup-script"] = "echo hello\n" * 50
        found.network_endpoints.add(ip_address="10.0.0.1", port=8470)
        return found

    everything = [make(number) for number in range(5_000)]
    response = raw_class(tpu_v2.ListNodesResponse)
    pages = [response(nodes=everything[at : at + 1_000]) for at in range(0, 5_000, 1_000)]
    for number, item in enumerate(pages[:-1], start=1):
        item.next_page_token = str(number)
    fake.on(LIST, lambda request: pages[int(request.page_token or 0)])
    async with connected(fake.endpoint) as cloud:
        start = time.process_time()
        listing = await cloud.tpu.list_nodes()
        used = time.process_time() - start
    assert len(listing.nodes) == 5_000
    assert listing.nodes[4_999].run == "run-4999"
    assert used < 2
