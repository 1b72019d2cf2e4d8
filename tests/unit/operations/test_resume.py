"""Resuming: when it may be done, what goes first, and what is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.operations.conftest import RUN_URL, Room, node
from tests.unit.operations.fake_cloud import ZONE
from tpudash.domain.operation import OperationState
from tpudash.domain.run import RunState
from tpudash.errors import NotAllowedError, NotFoundError, UnreachableError
from tpudash.operations.refusals import RefusedError
from tpudash.operations.run_files import complete_checkpoint

if TYPE_CHECKING:
    from pathlib import Path


async def preempted(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.saves(300)
    room.world.set_state(node("demo-1"), "PREEMPTED")


async def test_the_dead_node_is_deleted_and_gone_before_another_one_is_made(room: Room) -> None:
    await preempted(room)
    plan = await room.operations.plan_resume("demo")
    assert any("step 300" in effect for effect in plan.effects)
    assert any("40 steps" in effect for effect in plan.effects)
    assert plan.confirm_word is None
    room.world.calls.clear()
    assert (await room.carried_out(plan)).state is OperationState.DONE
    calls = [call for call in room.world.calls if call.startswith(("delete_node", "create_node"))]
    assert calls == [f"delete_node {node('demo-1')}", f"create_node {node('demo-2')}"]
    assert list(room.world.nodes) == [node("demo-2")]
    assert room.spec().attempt == 2
    run = await room.run()
    assert (run.state, len(run.attempts)) == (RunState.RESUMING, 1)
    room.agent_writes(2, step=310, restored_step=300)
    assert (await room.run()).steps_lost == 40


async def test_a_run_that_trains_is_not_touched(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    with pytest.raises(RefusedError, match="training at step 340"):
        await room.operations.plan_resume("demo")


async def test_a_run_that_starts_is_not_touched(room: Room) -> None:
    await room.launch()
    with pytest.raises(RefusedError, match="LAUNCHING"):
        await room.operations.plan_resume("demo")


async def test_a_finished_run_is_not_resumed(room: Room) -> None:
    await room.launch()
    room.agent_writes(1, "FINISHED", step=600)
    with pytest.raises(RefusedError, match="finished"):
        await room.operations.plan_resume("demo")


async def test_a_silent_agent_on_a_ready_node_wants_the_name_typed(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.clock.pass_(121)
    plan = await room.operations.plan_resume("demo")
    assert plan.confirm_word == "demo"
    assert any("READY" in warning for warning in plan.warnings)


async def test_nothing_is_done_while_the_zone_is_silent(room: Room) -> None:
    await preempted(room)
    room.world.unreachable = (ZONE,)

    def silent(method: str, target: str) -> None:
        if method == "get_node":
            raise UnreachableError("no answer")

    room.world.before = silent
    with pytest.raises(UnreachableError, match="does not answer"):
        await room.operations.plan_resume("demo")


async def test_a_silent_listing_is_made_up_for_by_asking_for_the_node(room: Room) -> None:
    await preempted(room)
    room.world.unreachable = (ZONE,)
    plan = await room.operations.plan_resume("demo")
    assert node("demo-1") in plan.nodes


async def test_an_expired_sign_in_is_not_gone(room: Room) -> None:
    await preempted(room)

    def expired(method: str, target: str) -> None:
        if method == "list_nodes":
            raise NotAllowedError("signed out")

    room.world.before = expired
    with pytest.raises(NotAllowedError):
        await room.operations.plan_resume("demo")


async def test_records_that_cannot_be_read_forbid_to_act(room: Room) -> None:
    await preempted(room)

    def no_access(method: str, target: str) -> None:
        if method == "read" and target.endswith("run.json"):
            raise NotAllowedError("no access")

    room.world.before = no_access
    with pytest.raises(UnreachableError, match="not known"):
        await room.operations.plan_resume("demo")


async def test_a_node_that_vanished_is_replaced(room: Room) -> None:
    await preempted(room)
    room.world.nodes.clear()
    assert (await room.resume()).state is OperationState.DONE
    assert room.world.live("demo") == ["demo-2"]
    assert room.world.counted("delete_node") == 0


async def test_a_deleted_run_goes_on_and_the_plan_says_so(room: Room) -> None:
    await preempted(room)
    await room.delete()
    plan = await room.operations.plan_resume("demo")
    assert any("DELETED" in effect for effect in plan.effects)
    await room.carried_out(plan)
    assert room.spec().deleted is None
    assert (await room.run()).state is RunState.RESUMING


async def test_another_machine_resumes_from_the_node_alone(room: Room, tmp_path: Path) -> None:
    await preempted(room)
    for url in [url for url in room.world.files if "/bundle/" not in url]:
        del room.world.files[url]
    room.session(owner="bob", folder=tmp_path / "elsewhere")
    plan = await room.operations.plan_resume("demo")
    assert any("belongs to alice" in warning for warning in plan.warnings)
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert room.world.nodes[node("demo-2")].owner == "alice"


async def test_another_machine_resumes_from_the_bucket_alone(room: Room, tmp_path: Path) -> None:
    await preempted(room)
    room.world.nodes.clear()
    room.session(folder=tmp_path / "elsewhere")
    assert (await room.resume()).state is OperationState.DONE
    assert room.spec().attempt == 2


async def test_a_damaged_run_json_is_set_aside_and_the_node_tells_the_spec(room: Room) -> None:
    await preempted(room)
    room.world.files[f"{RUN_URL}/run.json"] = b"\xff\xfe"
    run = await room.run()
    assert "damaged" in run.reason
    assert room.world.files[f"{RUN_URL}/run.json"] == b"\xff\xfe", "reading changes nothing"
    assert (await room.resume()).state is OperationState.DONE
    assert room.world.files[f"{RUN_URL}/run.json.corrupt-1"] == b"\xff\xfe"
    assert room.spec().attempt == 2


async def test_a_node_of_another_owner_with_the_same_label_is_left_alone(room: Room) -> None:
    await preempted(room)
    labels = {**room.world.nodes[node("demo-1")].labels, "tpudash-owner": "bob"}
    room.world.made(node("stray"), "PREEMPTED", labels=labels)
    await room.resume()
    assert node("stray") in room.world.nodes


async def test_a_node_that_took_the_name_since_is_left_alone(room: Room) -> None:
    await preempted(room)
    plan = await room.operations.plan_resume("demo")
    room.clock.pass_(60)
    old = room.world.nodes[node("demo-1")]
    room.world.nodes[node("demo-1")] = replace(old, create_time=room.clock.now(), state="READY")
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.FAILED
    assert room.world.counted("delete_node") == 0
    assert room.world.live("demo") == ["demo-1"]


async def test_a_spec_that_points_elsewhere_is_not_believed(room: Room) -> None:
    await preempted(room)
    room.world.files.clear()
    old = room.world.nodes[node("demo-1")]
    spec = {**json.loads(old.metadata["tpudash-spec"]), "run_url": "/etc"}
    metadata = {**old.metadata, "tpudash-spec": json.dumps(spec)}
    room.world.nodes[old.name] = replace(old, metadata=metadata)
    room.session(folder=room.folder.with_name("elsewhere"))
    with pytest.raises(NotFoundError) as caught:
        await room.operations.plan_resume("demo")
    assert "run_url" in caught.value.detail


async def test_an_unknown_run_is_told_the_nearest(room: Room) -> None:
    await room.launch()
    with pytest.raises(NotFoundError) as caught:
        await room.operations.plan_resume("demp")
    assert "demo" in caught.value.hint


def test_only_complete_checkpoints_count() -> None:
    names = [
        "ckpt-100.index", "ckpt-100.data-00000-of-00001",
        "ckpt-200.index", "ckpt-200.data-00000-of-00002",
        "ckpt-300.data-00000-of-00001", "ckpt-400.index", "checkpoint",
    ]  # fmt: skip
    assert complete_checkpoint(names) == 100
    assert complete_checkpoint([]) is None
