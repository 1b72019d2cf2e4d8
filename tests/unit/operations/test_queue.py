"""Nodes through queued resources: waited for, given back when they fail, deleted in order."""

from __future__ import annotations

import contextlib
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operations.conftest import Room, node, wish
from tests.unit.operations.fake_cloud import OTHER_ZONE, PROJECT, ZONE, CrashError
from tpudash.domain.bucket_location import is_near
from tpudash.domain.node import Scheduling
from tpudash.domain.operation import OperationState, ResumeChanges
from tpudash.domain.request import RequestState, Tier
from tpudash.domain.resource_name import request_name
from tpudash.domain.run import Placement, RunState
from tpudash.errors import OutcomeUnknownError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = request_name(PROJECT, ZONE, "demo-1")


def queued(**changes: Any) -> dict[str, Any]:
    placement = {"queued": True, **changes}
    return {"placement": Placement(**placement)}


async def test_a_queued_launch_is_followed_until_its_node_is_ready(room: Room) -> None:
    progress = await room.launch(**queued(tags=("ssh",), labels={"team": "x"}))
    assert progress.state is OperationState.DONE
    template = room.world.templates[REQUEST]
    assert (template.tier, template.node.tags) == (Tier.SPOT, ("ssh",))
    assert template.node.labels["team"] == "x"
    assert room.world.counted("create_node") == 0
    assert room.world.live("demo") == ["demo-1"]


async def test_a_run_whose_request_waits_is_waiting_and_deleted_as_such(room: Room) -> None:
    room.world.stocked_out = {ZONE}
    plan = await room.operations.plan_launch(wish(**queued()))
    begun = room.operations.start(plan)
    while room.world.requests.get(REQUEST) is None or (
        room.world.requests[REQUEST].state != RequestState.WAITING_FOR_RESOURCES
    ):
        await room.clock.sleep(0.1)
    assert (await room.run()).state is RunState.WAITING
    await room.operations.aclose()
    room.session()
    assert (await room.delete()).state is OperationState.DONE
    assert not room.world.requests
    assert room.operations.follow(begun.operation_id).state is OperationState.FAILED


async def test_an_expired_request_is_given_back_and_the_next_zone_tried(room: Room) -> None:
    room.world.stocked_out = {ZONE}
    progress = await room.launch(zones=(ZONE, OTHER_ZONE), **queued(valid_until_s=3600.0))
    assert progress.state is OperationState.DONE
    assert list(room.world.requests) == [request_name(PROJECT, OTHER_ZONE, "demo-1")]
    assert room.world.most_live == 1


async def test_a_resume_deletes_node_and_request_before_it_asks_again(room: Room) -> None:
    await room.launch(**queued())
    room.agent_writes(1)
    room.world.set_state(node("demo-1"), "PREEMPTED")
    assert (await room.resume()).state is OperationState.DONE
    assert [one.rsplit("/", 1)[-1] for one in room.world.requests] == ["demo-2"]
    assert room.world.live("demo") == ["demo-2"]


async def test_a_resume_may_leave_the_queue(room: Room) -> None:
    await room.launch(**queued())
    room.agent_writes(1)
    room.world.set_state(node("demo-1"), "PREEMPTED")
    changes = ResumeChanges(queued=False, zones=(OTHER_ZONE,))
    plan = await room.operations.plan_resume("demo", changes)
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert room.world.counted("create_node") == 1
    assert room.spec().zone == OTHER_ZONE


async def test_an_unanswered_request_is_looked_for_and_not_made_twice(room: Room) -> None:
    def lost(method: str, target: str) -> None:
        if method == "create_request":
            room.world.after = lambda method, target: None
            raise OutcomeUnknownError("no answer")

    room.world.after = lost
    assert (await room.launch(**queued())).state is OperationState.DONE
    assert room.world.counted("create_request") == 1


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("is_out", [False, True])
async def test_every_point_of_interruption_of_a_queued_launch(
    tmp_path: Path, moment: str, is_out: bool
) -> None:
    request = wish(zones=(ZONE, OTHER_ZONE), **queued(valid_until_s=60.0))
    for number in count(1):
        room = Room(tmp_path / str(number))
        room.world.stocked_out = {ZONE} if is_out else set()
        plan = await room.operations.plan_launch(request)
        calls, crashed = count(1), [False]

        def crash(method: str, target: str) -> None:
            if next(calls) == number:  # noqa: B023  called before the next turn
                crashed[0] = True  # noqa: B023
                raise CrashError

        setattr(room.world, moment, crash)
        with contextlib.suppress(CrashError):
            await room.carried_out(plan)
        room.world.before = room.world.after = lambda method, target: None
        if not crashed[0]:
            break
        room.session()
        progress = await room.carried_out(await room.operations.plan_launch(request))
        assert progress.state is OperationState.DONE, (number, progress)
        assert room.world.live("demo") == ["demo-1"], number
        assert room.world.most_live == 1
        assert len(room.world.requests) == 1, number
        assert not room.operations.unfinished()
    assert number > 3


@pytest.mark.parametrize(
    "changes",
    [
        {"placement": Placement(reservation="r")},
        {"placement": Placement(valid_until_s=60.0)},
        {"placement": Placement(queued=True, guaranteed=True)},
        {"placement": Placement(queued=True), "scheduling": Scheduling.PREEMPTIBLE},
        {"placement": Placement(labels={"tpudash-run": "other"})},
        {"placement": Placement(labels={"Team": "x"})},
        {"placement": Placement(tags=("Not a tag",))},
    ],
)
async def test_what_does_not_go_together_is_refused(room: Room, changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        await room.operations.plan_launch(wish(**changes))
    assert not room.world.counted("create_node")


@pytest.mark.parametrize(
    ("place", "region", "near"),
    [
        ("us-central1", "us-central1", True),
        ("us", "us-central1", True),
        ("eu", "us-central1", False),
        ("nam4", "us-central1", True),
        ("nam4", "us-west1", False),
        ("europe-west4", "us-central1", False),
    ],
)
def test_a_bucket_is_near_its_own_regions(place: str, region: str, near: bool) -> None:
    assert is_near(place, region) is near


async def test_a_bucket_elsewhere_is_warned_of(room: Room) -> None:
    assert not any("egress" in one for one in (await room.operations.plan_launch(wish())).warnings)
    room.world.bucket_location = "europe-west4"
    assert any("egress" in one for one in (await room.operations.plan_launch(wish())).warnings)


async def test_a_deletion_says_what_still_holds_quota(room: Room) -> None:
    await room.launch()
    labels = {"tpudash-run": "old", "tpudash-owner": "alice", "tpudash-attempt": "1"}
    room.world.made(node("old-1"), "PREEMPTED", labels=labels)
    plan = await room.operations.plan_delete(("demo",))
    assert "Still holds quota afterwards: node old-1 (PREEMPTED, 4 chips)." in plan.effects
    progress = await room.carried_out(plan)
    assert "still holding quota: node old-1 (PREEMPTED, 4 chips)" in progress.message


async def test_a_launch_that_was_left_is_over_once_its_node_is_ready(room: Room) -> None:
    def crash(method: str, target: str) -> None:
        if method == "create_node":
            raise CrashError

    room.world.after = crash
    begun = room.operations.start(await room.operations.plan_launch(wish()))
    with contextlib.suppress(CrashError):
        await room.ended(begun.operation_id)
    room.world.set_state(node("demo-1"), "READY")
    room.session()
    assert len(room.operations.left_behind(PROJECT)) == 1
    room.clock.pass_(60)
    await room.operations.reconcile()
    assert not room.operations.left_behind(PROJECT)
    assert room.operations.follow(begun.operation_id).state is OperationState.DONE
