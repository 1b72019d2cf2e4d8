"""Faults of the world itself: schedules, late reads, stock-outs, storms; faults from files."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions

from tests.emulator_fixture import (
    CALL,
    PARENT,
    ZONE,
    Cloud,
    eventually,
    fast_settings,
    node_name,
    running_cloud,
)
from tpudash.emulator.emulator import Emulator
from tpudash.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

SPOT: dict[str, Any] = {"scheduling_config": {"spot": True}}


async def names(cloud: Cloud, parent: str = PARENT) -> list[str]:
    """Return the ids of the nodes that a list shows."""
    pager = await cloud.tpu.list_nodes({"parent": parent, "page_size": 100}, **CALL)
    return [node.name.rpartition("/")[2] async for node in pager]


async def test_partial_pages(emulator: Cloud) -> None:
    for name in ("a", "b", "c"):
        await emulator.create(name)
    await emulator.control.add_fault("partial-pages", method="ListNodes", page_size=2)
    pager = await emulator.tpu.list_nodes({"parent": PARENT, "page_size": 100}, **CALL)
    assert [len(page.nodes) async for page in pager.pages] == [2, 1]
    await emulator.control.clear_faults()
    await emulator.control.add_fault("partial-pages", method="ListNodes", page_size=0)
    pager = await emulator.tpu.list_nodes({"parent": PARENT, "page_size": 100}, **CALL)
    assert [len(page.nodes) async for page in pager.pages] == [0, 1, 1, 1]


async def test_stale_reads(emulator: Cloud) -> None:
    await emulator.create("old")
    await emulator.control.add_fault("stale-reads", lag_s=3600)
    await emulator.create("new")
    await emulator.delete("old")
    assert await names(emulator) == ["old"]
    assert (await emulator.get("old")).state.name == "READY"
    with pytest.raises(exceptions.NotFound):
        await emulator.get("new")
    await emulator.control.clear_faults()
    assert await names(emulator) == ["new"]


async def test_late_reads_catch_up(emulator: Cloud) -> None:
    await emulator.control.add_fault("stale-reads", lag_s=0.2)
    await emulator.create("a")
    assert await names(emulator) == []
    async with asyncio.timeout(5):
        while await names(emulator) != ["a"]:  # noqa: ASYNC110  (the cloud's own time)
            await asyncio.sleep(0.02)


async def test_a_wrong_clock(emulator: Cloud) -> None:
    await emulator.control.add_fault("clock-skew", skew_s=-3600)
    await emulator.create("a")
    created = (await emulator.get("a")).create_time
    behind = datetime.now(UTC) - created
    assert timedelta(minutes=59) < behind < timedelta(minutes=61)


async def test_stock_outs_by_schedule(emulator: Cloud) -> None:
    await emulator.control.add_fault("stock-out", accelerator_type="v2", zone=ZONE, for_s=3600)
    with pytest.raises(exceptions.GoogleAPICallError, match="no more capacity"):
        await emulator.create("a")
    await emulator.create("b", parent="projects/demo/locations/us-central1-c")
    await emulator.control.clear_faults()
    await emulator.control.add_fault("stock-out", zone=ZONE, after_s=3600)
    await emulator.create("a")


async def test_a_schedule_comes_and_goes(emulator: Cloud) -> None:
    await emulator.control.add_fault("503", method="ListNodes", for_s=0.2)
    with pytest.raises(exceptions.ServiceUnavailable):
        await names(emulator)

    async def works() -> bool:
        try:
            await names(emulator)
        except exceptions.ServiceUnavailable:
            return False
        return True

    async with asyncio.timeout(5):
        while not await works():  # noqa: ASYNC110  (the schedule's own time)
            await asyncio.sleep(0.02)


async def test_a_scheduled_hold_lets_go(emulator: Cloud) -> None:
    await emulator.control.add_fault("operation-never-ends", method="create", for_s=0.2)
    await asyncio.wait_for(emulator.create("a"), 5)


async def test_a_storm_takes_spot_nodes_only(emulator: Cloud) -> None:
    await emulator.create("spot", **SPOT)
    await emulator.create("fixed")
    await emulator.control.add_fault(
        "preemption-storm", rate_per_hour=36_000, notice_s=0, seed=3, zone="us-central1-*"
    )
    nodes = emulator.emulator.world.nodes
    spot = nodes.find("spot")
    await eventually(lambda: spot.message.state == 11, "the storm takes the spot node")
    await emulator.create("later", **SPOT)
    later = nodes.find("later")
    await eventually(lambda: later.message.state == 11, "a node made later is taken too")
    assert (await emulator.get("fixed")).state.name == "READY"
    await emulator.control.clear_faults()
    await emulator.create("after", **SPOT)
    assert (await emulator.get("after")).state.name == "READY"


def test_a_storm_is_drawn_from_its_seed() -> None:
    lives = [random.Random(f"3/{node_name('a')}/{count}").expovariate(1) for count in (1, 2)]
    assert lives[0] != lives[1]
    assert lives[0] == random.Random(f"3/{node_name('a')}/1").expovariate(1)


RULES: list[dict[str, Any]] = [
    {"kind": 429, "method": "ListNodes", "count": 1},
    {"kind": "stock-out", "zone": ZONE, "for_s": 60, "every_s": 600},
]


@pytest.mark.parametrize("wrapped", [False, True])
async def test_faults_from_a_file(tmp_path: Path, wrapped: bool) -> None:
    file = tmp_path / "faults.json"
    file.write_text(json.dumps({"faults": RULES} if wrapped else RULES))
    settings = fast_settings(tmp_path / "emulator", faults_file=file)
    async with running_cloud(settings) as cloud:
        with pytest.raises(exceptions.TooManyRequests):
            await names(cloud)
        assert [rule["kind"] for rule in await cloud.control.list_faults()] == ["stock-out"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- kind: latency\n  latency_s: 1\n- {kind: nonsense}", "fault 2: kind must be one of"),
        ("- {kind: latency}", "needs latency_s"),
        ("- {kind: error, code: TEAPOT}", "not a status code"),
        ("- {kind: error, colour: red}", "unknown field: colour"),
        ("- {kind: unreachable-zone, zone: mars-a}", "is none"),
        ("- {kind: drop, probability: 2}", "1 or less"),
        ("- {kind: drop, count: 0}", "1 or more"),
        ("- {kind: drop, count: 1.5}", "whole number"),
        ("- {kind: stock-out, every_s: 5, for_s: 9}", "shorter"),
        ("- {kind: error, details: [{}]}", "details"),
        ("- drop", "not an object"),
        ("faults: 3", "a list of faults"),
        ("fautls: []", "unknown key: fautls"),
        ("{", "neither JSON nor YAML"),
    ],
)
async def test_a_file_that_makes_no_sense(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(text)
    emulator = Emulator(fast_settings(tmp_path / "emulator", faults_file=file))
    with pytest.raises(ConfigurationError) as caught:
        await emulator.start()
    assert reason in (caught.value.detail or "")


async def test_control_says_what_is_wrong(emulator: Cloud) -> None:
    with pytest.raises(UsageError, match="unknown field: colour"):
        await emulator.control.add_fault("drop", colour="red")
    with pytest.raises(UsageError, match="must be a number"):
        await emulator.control.add_fault("latency", latency_s="soon")
