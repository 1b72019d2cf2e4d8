"""Launching: what is checked, what is made, and what is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operations.conftest import RUN_URL, Room, node, wish
from tests.unit.operations.fake_cloud import (
    BUCKET,
    OTHER_ZONE,
    RUNTIME,
    STOCKOUT_TEXT,
    ZONE,
    CrashError,
    refusal,
)
from tpudash.domain.failure import CloudStatus, ErrorClass, Origin
from tpudash.domain.operation import OperationState
from tpudash.domain.run import Placement, RunState
from tpudash.errors import NotFoundError, OutcomeUnknownError, TpudashError, UsageError
from tpudash.operations.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_a_plan_shows_the_exact_calls_and_changes_nothing(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())
    creation = next(step for step in plan.steps if step.call.endswith("Tpu/CreateNode"))
    assert creation.target == node("demo-1")
    assert creation.request["node_id"] == "demo-1"
    body = creation.request["node"]
    assert (body["accelerator_type"], body["runtime_version"]) == ("v2-8", RUNTIME)
    assert body["scheduling_config"] == {"spot": True}
    assert body["labels"] == {
        "tpudash-run": "demo",
        "tpudash-owner": "alice",
        "tpudash-attempt": "1",
    }
    spec = body["metadata"]["tpudash-spec"]
    assert spec["recipe"]["command"] == [
        "python3", "-m", "trainer", "--steps", "600", "--checkpoint_every", "100", "--seed", "7",
    ]  # fmt: skip
    assert "bytes" in body["metadata"]["startup-script"]
    json.dumps([step.request for step in plan.steps])
    assert plan.cost_per_hour_usd == pytest.approx(1.35)
    changing = {"create_node", "delete_node", "write", "rename"}
    assert not changing & {call.split()[0] for call in room.world.calls}


async def test_a_launch_writes_bundle_and_spec_and_makes_one_node(room: Room) -> None:
    progress = await room.launch()
    assert progress.state is OperationState.DONE
    assert progress.steps_done == progress.steps_total
    (made,) = room.world.nodes.values()
    assert (made.name, made.state) == (node("demo-1"), "READY")
    assert made.metadata["startup-script"].startswith("#!")
    bundle = room.spec().bundle
    assert bundle is not None
    assert bundle.url in room.world.files
    assert json.loads(made.metadata["tpudash-spec"])["bundle"]["sha256"] == bundle.sha256
    assert (await room.run()).state is RunState.LAUNCHING


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "Demo"}, "can't be the name"),
        ({"run": "demo-"}, "can't be the name"),
        ({"run": "d" * 41}, "can't be the name"),
        ({"accelerator_type": "v2-9"}, "unknown accelerator"),
        ({"accelerator_type": "v3-8"}, "not offered"),
        ({"zones": ("us-central1-z",)}, "sees no zone"),
        ({"runtime_version": "tpu-vm-tf-9.9.9"}, "unknown runtime"),
        ({"runtime_version": "tpu-vm-tf-2.19.0-pod-pjrt"}, "does not fit"),
        ({"runtime_version": "v2-alpha-tpuv6e"}, "does not fit"),
        ({"accelerator_type": "v5litepod-8", "runtime_version": "tpu-vm-tf-2.13.0"}, "not fit"),
        ({"steps": 0}, "must be a number above 0"),
        ({"checkpoint_every_steps": -1}, "must be a number above 0"),
        ({"max_cost_usd": float("inf")}, "must be a number above 0"),
        ({"max_cost_usd": float("nan")}, "must be a number above 0"),
        ({"placement": Placement(service_account="trainer")}, "e-mail of a service account"),
        ({"bucket": "s3://b"}, "neither gs://"),
        ({"recipe": "jax", "validate_first": True}, "has no tests to run"),
        ({"bucket": "here"}, "can't see the folder"),
    ],
)
async def test_bad_input_is_refused_before_anything_is_created(
    room: Room, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        await room.operations.plan_launch(wish(**changes))
    assert not room.world.nodes
    assert not room.world.files


async def test_a_misspelled_accelerator_is_told_the_nearest(room: Room) -> None:
    with pytest.raises(UsageError) as caught:
        await room.operations.plan_launch(wish(accelerator_type="v2_8"))
    assert "v2-8" in caught.value.hint


async def test_a_missing_bucket_is_not_found(room: Room) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        await room.operations.plan_launch(wish(bucket="gs://other"))


async def test_a_slice_gets_an_image_for_slices(room: Room) -> None:
    plan = await room.operations.plan_launch(wish(accelerator_type="v2-32"))
    assert "tpu-vm-tf-2.19.0-pod-pjrt" in plan.effects[0]


async def test_tests_before_training_are_asked_of_the_agent_and_told(room: Room) -> None:
    plan = await room.operations.plan_launch(wish(validate_first=True))
    assert any("if a test fails, it does not train" in effect for effect in plan.effects)
    await room.launch(validate_first=True)
    assert json.loads(room.world.nodes[node("demo-1")].metadata["tpudash-spec"])["validate_first"]


async def test_a_stock_out_inside_the_operation_moves_on_to_the_next_zone(room: Room) -> None:
    room.world.stocked_out = {ZONE}
    progress = await room.launch(zones=(ZONE, OTHER_ZONE))
    assert progress.state is OperationState.DONE
    assert list(room.world.nodes) == [node("demo-1", OTHER_ZONE)]
    assert room.spec().zone == OTHER_ZONE
    assert room.world.most_live == 1


async def test_no_capacity_anywhere_is_told_and_the_name_may_be_used_again(room: Room) -> None:
    room.world.stocked_out = {ZONE, OTHER_ZONE}
    progress = await room.launch(zones=(ZONE, OTHER_ZONE))
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.STOCKOUT
    assert ZONE in progress.failure.evidence
    run = await room.run()
    assert run.state is RunState.FAILED
    assert "STOCKOUT" in run.reason
    room.world.stocked_out = set()
    assert (await room.launch()).state is OperationState.DONE
    assert list(room.world.nodes) == [node("demo-1")]


async def test_a_node_that_is_rolled_back_between_two_looks_is_a_stock_out(room: Room) -> None:
    plan = await room.operations.plan_launch(wish(zones=(ZONE, OTHER_ZONE)))
    looks: list[str] = []

    def roll_back_later(method: str, target: str) -> None:
        world = room.world
        if method == "get_operation" and not looks:
            # The operation is read as running, and the node as CREATING, a first time.
            world.operations[target] = replace(world.operations[target], verb="slow")
            looks.append(target)
        elif method == "get_node" and looks and world.counted("get_operation") == 2:
            world.operations[looks[0]] = replace(
                world.operations[looks[0]],
                done=True,
                error=CloudStatus("RESOURCE_EXHAUSTED", STOCKOUT_TEXT, (), Origin.OPERATION),
            )
            world.nodes.pop(node("demo-1"), None)

    room.world.before = roll_back_later
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.DONE
    assert list(room.world.nodes) == [node("demo-1", OTHER_ZONE)]


async def test_a_launch_left_behind_whose_run_was_preempted_is_to_be_resumed(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())

    def crash(method: str, target: str) -> None:
        if method == "get_operation":
            raise CrashError

    room.world.before = crash
    with pytest.raises(CrashError):
        await room.carried_out(plan)
    room.world.before = lambda method, target: None
    room.world.set_state(node("demo-1"), "READY")
    room.agent_writes(1)
    room.session()
    assert (await room.operations.plan_launch(wish())).warnings[0].startswith("this launch was")
    room.world.set_state(node("demo-1"), "PREEMPTED")
    with pytest.raises(RefusedError, match="PREEMPTED") as caught:
        await room.operations.plan_launch(wish())
    assert "resume" in caught.value.hint
    assert (await room.resume()).state is OperationState.DONE
    assert not room.operations.unfinished()


async def test_a_quota_stops_the_launch(room: Room) -> None:
    room.world.before = _raise_once("create_node", refusal(ErrorClass.QUOTA, "Limit: 0"))
    progress = await room.launch(zones=(ZONE, OTHER_ZONE))
    assert progress.state is OperationState.FAILED
    assert room.world.counted("create_node") == 0
    assert not room.world.nodes


async def test_no_record_holds_an_address_but_the_account_that_the_node_runs_as(
    room: Room,
) -> None:
    account = "trainer@demo.iam.gserviceaccount.com"
    denied = refusal(ErrorClass.PERMISSION, "someone@example.com may not act as that account")

    def refuse(method: str, target: str) -> None:
        if method == "create_node":
            raise denied

    room.world.before = refuse
    progress = await room.launch(placement=Placement(service_account=account))
    assert progress.state is OperationState.FAILED
    assert room.spec().placement.service_account == account, "no node could be made without it"
    written = room.journal.path.read_text() + b"".join(room.world.files.values()).decode("latin-1")
    assert "example.com" not in written
    assert "(address left out) may not act" in written


async def test_a_name_that_somebody_else_has_is_left_alone(room: Room) -> None:
    room.world.made(node("demo-1"), labels={"tpudash-owner": "bob"})
    with pytest.raises(RefusedError, match="taken") as caught:
        await room.operations.plan_launch(wish())
    assert "bob" in caught.value.detail
    assert "READY" in caught.value.detail


async def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())
    room.world.made(node("demo-1"), labels={"tpudash-owner": "bob"})
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.NAME_TAKEN
    assert room.world.counted("create_node") == room.world.counted("delete_node") == 0


async def test_a_run_that_is_alive_is_not_launched_again(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    with pytest.raises(RefusedError, match="TRAINING"):
        await room.operations.plan_launch(wish())


async def test_a_deleted_run_is_to_be_resumed_or_named_otherwise(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    await room.delete()
    with pytest.raises(RefusedError, match="DELETED") as caught:
        await room.operations.plan_launch(wish())
    assert "resume" in caught.value.hint


async def test_an_unanswered_creation_takes_up_the_node_that_was_made(room: Room) -> None:
    def lose_the_answer(method: str, target: str) -> None:
        if method == "create_node":
            raise OutcomeUnknownError("no answer")

    room.world.after = lose_the_answer
    assert (await room.launch()).state is OperationState.DONE
    assert room.world.counted("create_node") == 1


async def test_an_unanswered_creation_without_a_node_is_unknown_and_never_repeated(
    room: Room,
) -> None:
    room.world.before = _raise_once("create_node", OutcomeUnknownError("no answer"))
    progress = await room.launch()
    assert progress.state is OperationState.UNKNOWN
    assert room.world.counted("create_node") == room.world.counted("delete_node") == 0
    assert [one.run for one in room.operations.unfinished()] == ["demo"]
    # The user's own word is another thing: then it is asked whether the node is there, and made.
    assert (await room.launch()).state is OperationState.DONE
    assert not room.operations.unfinished()


async def test_a_damaged_run_json_is_set_aside_and_kept(room: Room) -> None:
    room.world.files[f"{RUN_URL}/run.json"] = b'{"run": "de'
    plan = await room.operations.plan_launch(wish())
    assert any("set aside" in warning for warning in plan.warnings)
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert room.world.files[f"{RUN_URL}/run.json.corrupt-1"] == b'{"run": "de'
    assert room.spec().run == "demo"


async def test_keys_of_other_versions_survive_our_writing(room: Room) -> None:
    await room.launch()
    url = f"{RUN_URL}/run.json"
    room.world.files[url] = json.dumps(
        {**json.loads(room.world.files[url]), "colour": "red"}
    ).encode()
    await room.delete()
    assert json.loads(room.world.files[url])["colour"] == "red"


async def test_a_node_that_is_deleted_while_it_is_made_ends_the_launch(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())

    def somebody_deletes(method: str, target: str) -> None:
        if method == "get_operation" and room.world.nodes:
            room.world.nodes.clear()

    room.world.before = somebody_deletes
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.GONE
    assert room.world.counted("create_node") == 1


async def test_a_launch_that_goes_on_elsewhere_is_not_begun_twice(room: Room) -> None:
    with room.journal.held("demo"), pytest.raises(RefusedError, match="going on"):
        await room.operations.plan_launch(wish())


async def test_buckets_and_owners_are_kept_as_they_were_asked_for(room: Room) -> None:
    await room.launch(bucket=f"{BUCKET}/")
    spec = room.spec()
    assert (spec.bucket, spec.owner) == (BUCKET, "alice")
    assert replace(spec, attempt=2).node_id == "demo-2"


def _raise_once(method: str, error: TpudashError) -> Callable[[str, str], None]:
    left = [error]

    def before(called: str, target: str) -> None:
        if called == method and left:
            raise left.pop()

    return before
