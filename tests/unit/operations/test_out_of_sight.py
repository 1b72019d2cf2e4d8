"""Who may not look at the cloud's operations follows the nodes themselves."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.unit.operations.conftest import wish
from tests.unit.operations.fake_cloud import PROJECT, ZONE, refusal
from tests.unit.operations.test_interruptions import STORIES
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationState

if TYPE_CHECKING:
    from tests.unit.operations.conftest import Room


@pytest.mark.parametrize("kind", [ErrorClass.PERMISSION, ErrorClass.BAD_REQUEST])
@pytest.mark.parametrize("story", ["launch", "resume", "delete"])
async def test_without_a_right_to_operations_the_node_itself_is_followed(
    room: Room, story: str, kind: ErrorClass
) -> None:
    prepare, make_plan, expected = STORIES[story]
    await prepare(room)
    plan = await make_plan(room)
    looks = count(1)

    def refuse(method: str, target: str) -> None:
        if method == "get_operation":
            raise refusal(kind, "Permission 'tpu.operations.get' denied, or no such method")
        if method == "get_node" and next(looks) % 4 == 0:
            # Time passes for the cloud too, though nobody may look at its operations.
            for name in list(room.world.operations):
                room.world.tick(name)

    room.world.before = refuse
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.DONE, progress
    assert room.world.live("demo") == expected


async def test_a_creation_that_can_no_more_be_looked_at_is_not_taken_for_failed(room: Room) -> None:
    room.world.stocked_out = {ZONE}
    plan = await room.operations.plan_launch(wish())

    def refuse(method: str, target: str) -> None:
        if method == "get_operation":
            room.world.tick(target)
            raise refusal(ErrorClass.PERMISSION, "Permission 'tpu.operations.get' denied")

    room.world.before = refuse
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.UNKNOWN
    assert "not known" in progress.message
    room.world.before = lambda method, target: None
    room.session()
    (left,) = room.operations.left_behind(PROJECT)
    room.operations.follow(left.operation_id)
    assert (await room.ended(left.operation_id)).state is OperationState.FAILED
    assert not room.world.nodes
