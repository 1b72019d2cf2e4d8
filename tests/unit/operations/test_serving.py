"""Launching a server: the model must be there, and the run lives and dies as any other does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operations.conftest import Room, wish
from tests.unit.operations.fake_cloud import BUCKET
from tpudash.domain.run import RunState
from tpudash.errors import NotFoundError, UsageError
from tpudash.operations.refusals import RefusedError

if TYPE_CHECKING:
    from tpudash.domain.operation import LaunchRequest

MODEL = f"{BUCKET}/tpudash/runs/mnist"


def serving(serve: str = "mnist", **changes: Any) -> LaunchRequest:
    nothing = {"steps": None, "checkpoint_every_steps": None, "seed": None}
    return wish(serve=serve, **{**nothing, **changes})


@pytest.mark.parametrize("serve", ["mnist", f"{MODEL}/", f"{MODEL}/export"])
async def test_a_model_is_served_by_its_run_or_its_folder(room: Room, serve: str) -> None:
    room.world.files[f"{MODEL}/export/600/saved_model.pb"] = b"x"
    plan = await room.operations.plan_launch(serving(serve, trainer_arguments=("--port", "9000")))
    folder = f"{MODEL}/export" if serve.endswith("export") else MODEL
    assert any(f"newest export of {folder} on port 9000" in text for text in plan.effects)
    await room.carried_out(plan)
    recipe = room.spec().recipe
    assert (recipe.name, recipe.workers) == ("tensorflow-serve", "first")
    assert recipe.command[1:] == ("-m", "trainer.serve", "--model", folder, "--port", "9000")


async def test_without_a_model_no_node_is_made(room: Room) -> None:
    room.world.files[f"{MODEL}/checkpoints/ckpt-5.index"] = b"x"
    with pytest.raises(NotFoundError, match="no exported model"):
        await room.operations.plan_launch(serving())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steps": 5}, "--steps is for training"),
        ({"validate_first": True}, "--validate-first is for training"),
        ({"serve": "Not A Run"}, "neither a run nor a folder"),
    ],
)
async def test_what_a_server_does_not_do_is_refused(
    room: Room, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        await room.operations.plan_launch(serving(**changes))


async def test_a_preempted_server_is_resumed_with_the_same_model(room: Room) -> None:
    room.world.files[f"{MODEL}/export/600/saved_model.pb"] = b"x"
    await room.carried_out(await room.operations.plan_launch(serving()))
    command = room.spec().recipe.command
    nothing = {"step": None, "checkpoint_step": None, "target_step": None, "restored_step": None}
    room.agent_writes(1, "SERVING", **nothing)
    assert (await room.run()).state is RunState.SERVING
    with pytest.raises(RefusedError, match="is serving"):
        await room.operations.plan_resume("demo")
    room.agent_writes(1, "PREEMPTED", **nothing)
    await room.resume()
    assert (room.spec().attempt, room.spec().recipe.command) == (2, command)
    room.agent_writes(2, "SERVING", **nothing)
    await room.delete()
    assert (await room.run()).state is RunState.DELETED
