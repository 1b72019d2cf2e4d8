"""The world under a clock that is moved by hand: what takes time takes exactly so long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import tpu_v2

from tests.unit.emulator.manual_clock import ManualClock, settle
from tpudash.emulator.errors import ApiError
from tpudash.emulator.identifiers import ResourceName
from tpudash.emulator.settings import EmulatorSettings
from tpudash.emulator.world.host import HostError, NoHost
from tpudash.emulator.world.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tpudash.emulator.world.nodes import NodeRecord

State = tpu_v2.Node.State
NAME = ResourceName("demo", "us-central1-b", "nodes", "a")
HOUR = 3600.0


class RecordingHost(NoHost):
    """Notes what it is asked for; boots fail on request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.broken = False

    async def start(self, record: NodeRecord) -> None:
        self.asked.append(("start", record.name.id))
        if self.broken:
            raise HostError("no machine")

    async def stop(self, name: str, notice_s: float) -> None:
        self.asked.append(("stop", f"{notice_s:g}"))

    def announce(self, name: str, key: str, value: str) -> None:
        self.asked.append((key, value))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def host() -> RecordingHost:
    return RecordingHost()


@pytest.fixture
async def world(tmp_path: Path, clock: ManualClock, host: RecordingHost) -> AsyncIterator[World]:
    made = World(EmulatorSettings(state_dir=tmp_path, seed=1), clock, host, lambda: True)
    yield made
    await made.close()


def node(**scheduling: bool) -> Any:
    """Return a v2-8 node."""
    config = {"accelerator_type": "v2-8", "runtime_version": "tpu-ubuntu2204-base"}
    return tpu_v2.Node.pb(tpu_v2.Node({**config, "scheduling_config": scheduling}))


def set_aside(folder: Path) -> list[Path]:
    """Return the state files that were put aside."""
    return list(folder.glob("state.sqlite3.corrupt-*"))


async def ready(world: World, clock: ManualClock, **scheduling: bool) -> NodeRecord:
    """Create a node and let it come up."""
    world.lifecycle.create(NAME, node(**scheduling))
    await clock.advance(3)
    record = world.nodes.get(str(NAME))
    assert record.state == State.READY
    return record


async def test_creation_takes_as_long_as_set(world: World, clock: ManualClock) -> None:
    operation = world.lifecycle.create(NAME, node())
    await clock.advance(2.9)
    assert world.nodes.get(str(NAME)).state == State.CREATING
    assert not operation.done
    await clock.advance(0.1)
    assert world.nodes.get(str(NAME)).state == State.READY
    assert operation.done


async def test_preemptible_nodes_end_after_24_hours(world: World, clock: ManualClock) -> None:
    record = await ready(world, clock, preemptible=True)
    await clock.advance(24 * HOUR - 4)
    assert record.state == State.READY
    await clock.advance(2)
    assert record.state == State.TERMINATED


async def test_spot_nodes_have_no_limit(world: World, clock: ManualClock) -> None:
    record = await ready(world, clock, spot=True)
    await clock.advance(100 * HOUR)
    assert record.state == State.READY


async def test_maintenance_passes_through_repairing(
    world: World, clock: ManualClock, host: RecordingHost
) -> None:
    record = await ready(world, clock)
    world.tasks.start(
        world.lifecycle.events.maintain(record, notice_s=60, duration_s=30, outcome="READY"), "m"
    )
    await clock.advance(59)
    assert record.state == State.READY
    assert record.maintenance["maintenance_status"] == "PENDING"
    assert ("maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE") in host.asked
    await clock.advance(1)
    assert record.state == State.REPAIRING
    assert record.message.health == tpu_v2.Node.Health.UNHEALTHY_MAINTENANCE
    await clock.advance(30)
    assert record.state == State.READY
    assert record.message.health == tpu_v2.Node.Health.HEALTHY
    assert record.maintenance == {}
    assert [act for act, _ in host.asked if act in {"start", "stop"}] == ["start", "stop", "start"]


async def test_a_failed_repair_leaves_unknown(
    world: World, clock: ManualClock, host: RecordingHost
) -> None:
    record = await ready(world, clock)
    host.broken = True
    world.tasks.start(
        world.lifecycle.events.maintain(record, notice_s=0, duration_s=30, outcome="READY"), "m"
    )
    await clock.advance(31)
    assert record.state == State.UNKNOWN


async def test_a_machine_that_does_not_come_up_fails_the_creation(
    world: World, clock: ManualClock, host: RecordingHost
) -> None:
    host.broken = True
    operation = world.lifecycle.create(NAME, node())
    await clock.advance(3)
    assert operation.error.code == 13
    assert str(NAME) not in world.nodes


async def test_deletion_wins_over_a_preemption_under_way(
    world: World, clock: ManualClock, host: RecordingHost
) -> None:
    record = await ready(world, clock, spot=True)
    world.lifecycle.delete(str(NAME))
    with pytest.raises(ApiError, match="preempt is not supported while in state DELETING"):
        await world.lifecycle.events.preempt(record, 10)
    await clock.advance(1.5)
    assert str(NAME) not in world.nodes


async def test_work_goes_on_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    settings = EmulatorSettings(state_dir=tmp_path, seed=1)
    first = World(settings, clock, NoHost(), lambda: True)
    creation = first.lifecycle.create(NAME, node())
    await settle()
    await first.close()

    second = World(settings, clock, NoHost(), lambda: True)
    second.resume()
    await clock.advance(3)
    assert second.nodes.get(str(NAME)).state == State.READY
    assert second.operations.get(creation.name).done
    second.lifecycle.delete(str(NAME))
    await settle()
    await second.close()

    third = World(settings, clock, NoHost(), lambda: True)
    third.resume()
    await clock.advance(2)
    assert str(NAME) not in third.nodes
    await third.close()


async def test_limits_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    settings = EmulatorSettings(state_dir=tmp_path, seed=1)
    first = World(settings, clock, NoHost(), lambda: True)
    first.capacity.set("us-central1-b", "v2-8", 4)
    first.quotas.set("us-central1", "TPUV2sPerProjectPerRegionForTPUAPI", 8)
    await first.close()
    second = World(settings, clock, NoHost(), lambda: True)
    assert second.capacity.limits == {("us-central1-b", "v2-8"): 4}
    assert second.quotas.limits == {("us-central1", "TPUV2sPerProjectPerRegionForTPUAPI"): 8}
    await second.close()


async def test_a_record_that_cannot_be_read_sets_the_file_aside(
    tmp_path: Path, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = EmulatorSettings(state_dir=tmp_path, seed=1)
    first = World(settings, clock, NoHost(), lambda: True)
    first.state.put("node", str(NAME), b"\xff\xff")
    await first.close()
    second = World(settings, clock, NoHost(), lambda: True)
    assert len(second.nodes) == 0
    second.lifecycle.create(NAME, node())
    await second.close()
    assert len(set_aside(tmp_path)) == 1
    assert "set aside" in capsys.readouterr().err
