"""The supervisor against the real emulator: a seeded storm of its faults; the agent is by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.test_operations_emulator import IDLE, QUICK, SECOND_ZONE, Place, placed
from tests.emulator_fixture import ZONE, eventually
from tpudash.clock import SystemClock
from tpudash.domain.operation import LaunchRequest, OperationState, ResumeChanges, SupervisionWish
from tpudash.domain.run import Placement
from tpudash.gateways import pace
from tpudash.operations import supervise_policy
from tpudash.operations.journal import Journal
from tpudash.operations.service import Operations, OperationsOptions
from tpudash.operations.supervise_policy import Waiting

if TYPE_CHECKING:
    from pathlib import Path

TPU = "google.cloud.tpu.v2.Tpu"
PACE = replace(QUICK, watch_first_s=0.05, watch_longest_s=0.3)
LIVE = {"CREATING", "READY"}
FINISHED_AFTER = 2
"""Lives of nodes that the storm takes before the run finishes."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {kind: Waiting(0.1, 0.3) for kind in supervise_policy.WAITING}
    monkeypatch.setattr("tpudash.operations.supervisor.WAITING", quick)
    monkeypatch.setattr("tpudash.operations.supervisor.UNKNOWN_SETTLES_S", 1.0)
    # An hour passes in seconds here, and so do the calls that may be made in it.
    rates = {spend: replace(rate, at_once=10_000) for spend, rate in pace.RATES.items()}
    monkeypatch.setattr(pace, "RATES", rates)


def session(place: Place) -> Operations:
    operations = Operations(
        place.connection,
        Journal(place.folder / "state", SystemClock()),
        rate=lambda kind, zone, scheduling: 1.35,
        report=place.reports.append,
        owner="alice",
        options=OperationsOptions(
            buckets=(str(place.bucket),), make_bundle=lambda: IDLE, pace=PACE
        ),
    )
    place.sessions.append(operations)
    return operations


def world_nodes(place: Place) -> dict[str, str]:
    """Return the state of every node, as the emulator itself knows it."""
    from tpudash.emulator.messages import NodeState

    nodes = place.cloud.emulator.world.nodes
    return {str(record.name): NodeState(record.state).name for record in nodes}


async def watched(place: Place, wrongs: list[str]) -> None:
    """Play the agents, and note whenever there are two live nodes."""
    step, seen = 0, set[str]()
    while True:
        states = world_nodes(place)
        live = [name for name, state in states.items() if state in LIVE]
        if len(live) > 1:
            wrongs.append(f"two live nodes: {live}")
        for name, state in states.items():
            if state != "READY":
                continue
            seen.add(name)
            step += 1
            attempt = int(name.rpartition("-")[2])
            is_over = len(seen) > FINISHED_AFTER
            now = datetime.now(UTC).isoformat()
            record: dict[str, Any] = {
                "schema": 1, "run": "demo", "attempt": attempt, "node": f"demo-{attempt}",
                "zone": name.split("/")[3], "state": "FINISHED" if is_over else "TRAINING",
                "started": now, "updated": now, "step": step, "checkpoint_step": step,
            }  # fmt: skip
            path = place.run_folder / f"attempts/{attempt}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(record))
            fresh.replace(path)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("seed", "queued"), [(1, False), (2, False), (1, True)])
async def test_a_run_comes_through_the_emulators_storm(
    tmp_path: Path, seed: int, queued: bool
) -> None:
    wrongs: list[str] = []
    async with placed(tmp_path, seed=seed) as place:
        request = LaunchRequest(
            run="demo",
            accelerator_type="v2-8",
            zones=(ZONE, SECOND_ZONE),
            bucket=str(place.bucket),
            placement=Placement(queued=queued, valid_until_s=2.0 if queued else None),
        )
        operations = session(place)
        begun = operations.start(await operations.plan_launch(request))
        await operations._tasks[begun.operation_id]
        agents = asyncio.create_task(watched(place, wrongs))
        control = place.cloud.control
        await control.add_fault("preemption-storm", rate_per_hour=7200, seed=seed, notice_s=0)
        await control.add_fault("stock-out", zone=ZONE, after_s=0.5, for_s=1.5, every_s=4)
        for method in ("CreateNode", "CreateQueuedResource", "DeleteNode"):
            await control.add_fault("drop", method=f"{TPU}/{method}", count=1)
        await control.add_fault("error", code="UNAVAILABLE", method=f"{TPU}/GetNode", count=4)
        wish = SupervisionWish(changes=ResumeChanges(zones=(ZONE, SECOND_ZONE)))
        try:
            for cut_after_s in (1.0, 1.5, None):
                supervisor = session(place)
                plan = await supervisor.plan_supervise("demo", wish)
                known = supervisor.start(plan).operation_id
                task = supervisor._tasks[known]
                await asyncio.wait({task}, timeout=cut_after_s or 60.0)
                if task.done():
                    break
                # The end of a process: what it began goes on in the cloud.
                await supervisor.aclose()
            progress = supervisor._progress[known]
        finally:
            agents.cancel()
        told = [f"{one.kind} {one.state} {one.message}" for one in place.reports[-8:]]
        assert progress.state is OperationState.DONE, told
        assert "is finished" in progress.message
        assert not wrongs


async def test_a_queued_launch_waits_for_room_and_is_deleted_in_order(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.cloud.control.set_capacity(ZONE, "v2-8", 0)
        operations = session(place)
        request = LaunchRequest(
            run="demo",
            accelerator_type="v2-8",
            zones=(ZONE,),
            bucket=str(place.bucket),
            placement=Placement(queued=True, tags=("ssh",), labels={"team": "x"}),
        )
        begun = operations.start(await operations.plan_launch(request))
        told = operations._progress

        def waits() -> bool:
            return "WAITING_FOR_RESOURCES" in told[begun.operation_id].message

        await eventually(waits, "the request waits")
        assert str((await place.run()).state) == "WAITING"
        await place.cloud.control.set_capacity(ZONE, "v2-8", 4)
        await operations._tasks[begun.operation_id]
        assert told[begun.operation_id].state is OperationState.DONE
        tpu = (await place.connection.cloud()).tpu
        (node,) = (await tpu.list_nodes()).nodes
        assert (node.labels["team"], str(node.scheduling)) == ("x", "spot")
        assert node.queued_resource is not None
        plan = await operations.plan_delete(("demo",))
        assert (await place.ended(operations, plan)).state is OperationState.DONE
        assert not (await tpu.list_requests()).requests
        assert not (await tpu.list_nodes()).nodes
