"""Deleting: what is meant, in what order, and that gone means NOT_FOUND."""

from __future__ import annotations

import pytest

from tests.unit.operations.conftest import RUN_URL, Room, node
from tests.unit.operations.fake_cloud import PROJECT, ZONE, CrashError, refusal
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationState
from tpudash.domain.request import QueuedResource
from tpudash.domain.resource_name import location_name
from tpudash.domain.run import RunState
from tpudash.errors import NotFoundError, UnreachableError, UsageError
from tpudash.operations.refusals import RefusedError

REQUEST = f"{location_name(PROJECT, ZONE)}/queuedResources/demo-1"


async def training(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.saves(300)


async def test_a_run_loses_its_nodes_and_keeps_its_checkpoints(room: Room) -> None:
    await training(room)
    plan = await room.operations.plan_delete(("demo",))
    assert plan.confirm_word == "demo"
    assert plan.nodes == (node("demo-1"),)
    said = " ".join(plan.effects)
    assert f"{RUN_URL}/checkpoints" in said
    assert "step 340" in said
    assert "1.35" in said
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert not room.world.nodes
    assert f"{RUN_URL}/checkpoints/ckpt-300.index" in room.world.files
    run = await room.run()
    assert (run.state, run.step, run.checkpoint_step) == (RunState.DELETED, 340, 300)


async def test_a_run_is_deleted_although_nobody_waited_for_the_end(room: Room) -> None:
    await training(room)
    plan = await room.operations.plan_delete(("demo",))

    def crash(method: str, target: str) -> None:
        if method == "delete_node":
            raise CrashError

    room.world.after = crash
    with pytest.raises(CrashError):
        await room.carried_out(plan)
    room.world.nodes.clear()
    assert (await room.run()).state is RunState.DELETED


async def test_what_is_gone_is_done(room: Room) -> None:
    await training(room)
    await room.delete()
    assert (await room.delete()).state is OperationState.DONE
    assert (await room.delete(node("demo-1"))).state is OperationState.DONE
    assert room.world.counted("delete_node") == 1


async def test_a_node_that_goes_away_by_itself_meanwhile_is_done(room: Room) -> None:
    await training(room)
    plan = await room.operations.plan_delete(("demo",))
    room.world.nodes.clear()
    assert (await room.carried_out(plan)).state is OperationState.DONE


async def test_what_others_own_is_deleted_only_by_full_name(room: Room) -> None:
    room.world.made(node("theirs"), labels={"tpudash-owner": "bob", "tpudash-run": "theirs"})
    room.world.made(node("bare"))
    for name in ("theirs", "bare"):
        with pytest.raises(RefusedError, match="belongs to") as caught:
            await room.operations.plan_delete((name,))
        assert node(name) in caught.value.hint
    assert (await room.delete(node("theirs"))).state is OperationState.DONE
    assert list(room.world.nodes) == [node("bare")]


async def test_an_unknown_name_is_not_found(room: Room) -> None:
    await training(room)
    with pytest.raises(NotFoundError) as caught:
        await room.operations.plan_delete(("demo-2",))
    assert caught.value.hint


async def test_a_name_of_no_known_kind_is_refused(room: Room) -> None:
    with pytest.raises(UsageError):
        await room.operations.plan_delete(("projects/demo/nodes/x",))
    with pytest.raises(UsageError):
        await room.operations.plan_delete(())


async def test_several_targets_are_one_plan(room: Room) -> None:
    await training(room)
    room.world.made(node("mine"), labels={"tpudash-owner": "alice"})
    room.world.made(node("theirs"), labels={"tpudash-owner": "bob"})
    plan = await room.operations.plan_delete(("demo", "mine"))
    assert plan.nodes == (node("demo-1"), node("mine"))
    assert plan.confirm_word == "delete 2"
    await room.carried_out(plan)
    assert list(room.world.nodes) == [node("theirs")]


async def test_a_request_goes_after_its_nodes_once_it_is_suspended(room: Room) -> None:
    await training(room)
    labels = dict(room.world.nodes[node("demo-1")].labels)
    room.world.requests[REQUEST] = QueuedResource(
        name=REQUEST, state="ACTIVE", node_names=(node("demo-1"),), labels=labels
    )
    assert (await room.delete()).state is OperationState.DONE
    assert not room.world.requests
    order = [call for call in room.world.calls if call.startswith("delete_")]
    assert order == [f"delete_node {node('demo-1')}", f"delete_request {REQUEST}"]


async def test_a_waiting_request_is_deleted_with_its_run(room: Room) -> None:
    labels = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}
    room.world.requests[REQUEST] = QueuedResource(
        name=REQUEST, state="WAITING_FOR_RESOURCES", labels=labels
    )
    assert (await room.run()).state is RunState.WAITING
    assert (await room.delete(REQUEST)).state is OperationState.DONE
    assert not room.world.requests


async def test_a_node_that_is_made_while_the_run_is_deleted_goes_too(room: Room) -> None:
    await training(room)
    plan = await room.operations.plan_delete(("demo",))
    labels = dict(room.world.nodes[node("demo-1")].labels)
    room.world.made(node("demo-1", "us-central1-c"), "CREATING", labels=labels)
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert not room.world.nodes


async def test_one_that_cannot_go_stops_none_of_the_others(room: Room) -> None:
    owned = {"tpudash-owner": "alice"}
    names = [node(f"n-{number}") for number in range(12)]
    for name in names:
        room.world.made(name, labels=owned)
    plan = await room.operations.plan_delete(names)

    def refuse(method: str, target: str) -> None:
        if (method, target) == ("delete_node", names[3]):
            raise refusal(ErrorClass.PERMISSION, "Permission 'tpu.nodes.delete' denied")

    room.world.before = refuse
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert "tpu.nodes.delete" in progress.failure.evidence
    assert list(room.world.nodes) == [names[3]]
    assert room.clock.monotonic() < 12 * 2, "several are followed side by side"


async def test_a_name_is_not_called_absent_while_a_zone_is_silent(room: Room) -> None:
    with pytest.raises(NotFoundError):
        await room.operations.plan_delete(("nope",))
    room.world.unreachable = (ZONE,)
    with pytest.raises(UnreachableError, match="not known whether") as caught:
        await room.operations.plan_delete(("nope",))
    assert ZONE in caught.value.detail
    with pytest.raises(UnreachableError, match="not known whether"):
        await room.operations.plan_resume("nope")
