"""An operation may break off between any two calls; done again, it comes to the same end."""

from __future__ import annotations

import contextlib
import json
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operations.conftest import Room, node, wish
from tests.unit.operations.fake_cloud import OTHER_ZONE, PROJECT, ZONE, CrashError
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.domain.run import Placement, RunState
from tpudash.errors import ConfigurationError, UnreachableError
from tpudash.operations.journal import JournalledOperation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from tpudash.domain.operation import OperationProgress, Plan

    MakePlan = Callable[[Room], Awaitable[Plan]]
    Prepare = Callable[[Room], Awaitable[None]]


async def nothing(room: Room) -> None:
    """Begin with an empty world."""


async def preempted(room: Room) -> None:
    """Begin with a run whose node was taken away at step 340."""
    await room.launch()
    room.agent_writes(1)
    room.saves(300)
    room.world.set_state(node("demo-1"), "PREEMPTED")


async def training(room: Room) -> None:
    """Begin with a run that trains."""
    await room.launch()
    room.agent_writes(1)


async def no_capacity_at_first(room: Room) -> None:
    """Begin with an empty world whose first zone has nothing left."""
    room.world.stocked_out = {ZONE}


def plan_launch(room: Room) -> Awaitable[Plan]:
    return room.operations.plan_launch(wish(zones=(ZONE, OTHER_ZONE)))


def plan_resume(room: Room) -> Awaitable[Plan]:
    return room.operations.plan_resume("demo")


def plan_delete(room: Room) -> Awaitable[Plan]:
    return room.operations.plan_delete(("demo",))


async def queued(room: Room) -> None:
    """Begin with a run whose queued resource was served and whose node was then taken away."""
    await room.launch(placement=Placement(queued=True))
    room.agent_writes(1)
    room.world.set_state(node("demo-1"), "PREEMPTED")


def plan_queued(room: Room) -> Awaitable[Plan]:
    placement = Placement(queued=True, valid_until_s=60.0)
    return room.operations.plan_launch(wish(zones=(ZONE, OTHER_ZONE), placement=placement))


STORIES = {
    "launch": (nothing, plan_launch, ["demo-1"]),
    "launch-elsewhere": (no_capacity_at_first, plan_launch, ["demo-1"]),
    "launch-queued": (nothing, plan_queued, ["demo-1"]),
    "launch-queued-elsewhere": (no_capacity_at_first, plan_queued, ["demo-1"]),
    "resume": (preempted, plan_resume, ["demo-2"]),
    "resume-queued": (queued, plan_resume, ["demo-2"]),
    "delete": (training, plan_delete, []),
    "delete-queued": (queued, plan_delete, []),
}
LINES = ("before a line", "in a line", "after a line")


def crash_at(number: int, moment: str, room: Room) -> Callable[[], bool]:
    """Let the process end at its call, or its line of the journal, of that number.

    Returns whether it did.
    """
    if moment in LINES:
        return crash_at_line(number, moment, room)
    calls, crashed = count(1), [False]

    def step(method: str, target: str) -> None:
        if next(calls) == number:
            crashed[0] = True
            raise CrashError

    setattr(room.world, moment, step)
    return lambda: crashed[0]


def crash_at_line(number: int, moment: str, room: Room) -> Callable[[], bool]:
    file, lines, crashed = room.journal._file, count(1), [False]
    write = file.append

    def append(record: Mapping[str, Any]) -> None:
        if next(lines) != number:
            write(record)
            return
        crashed[0] = True
        if moment == "after a line":
            write(record)
        elif moment == "in a line":
            with file.path.open("ab") as torn:
                torn.write(json.dumps(record).encode()[:40])
        raise CrashError

    file.append = append  # type: ignore[method-assign]
    return lambda: crashed[0]


async def broken_off(room: Room, plan: Plan) -> None:
    """Carry a plan out until the process ends."""
    with contextlib.suppress(CrashError):
        await room.carried_out(plan)
    room.world.before = room.world.after = lambda method, target: None


@pytest.mark.parametrize("moment", ["before", "after", *LINES])
@pytest.mark.parametrize("again", ["planned anew", "followed"])
@pytest.mark.parametrize("story", STORIES)
async def test_every_point_of_interruption_leads_to_the_same_end(
    tmp_path: Path, story: str, again: str, moment: str
) -> None:
    prepare, make_plan, expected = STORIES[story]
    for number in count(1):
        room = Room(tmp_path / str(number))
        await prepare(room)
        plan = await make_plan(room)
        room.world.calls.clear()
        crashed = crash_at(number, moment, room)
        await broken_off(room, plan)
        if not crashed():
            assert number > 1, "the story was never interrupted"
            break
        room.session()
        if moment == "after a line" and not room.operations.unfinished():
            # Its end was written, so that there is nothing to take up.
            assert room.world.live("demo") == expected, number
            continue
        progress = await taken_up(room, make_plan, again)
        assert progress.state is OperationState.DONE, (number, progress)
        assert room.world.live("demo") == expected, number
        assert room.world.most_live <= 1
        assert not room.operations.unfinished(), number
        assert len(room.world.requests) == (len(expected) if "queued" in story else 0), number
        assert room.world.counted("create_node") <= (3 if room.world.stocked_out else 2)
    assert number > 3 or moment == "after"


async def taken_up(room: Room, make_plan: MakePlan, again: str) -> OperationProgress:
    """Do it again, as the user would, or by taking up what the journal holds."""
    begun = room.operations.unfinished()
    if again == "followed" and begun:
        (one,) = begun
        room.operations.follow(one.operation_id)
        return await room.ended(one.operation_id)
    return await room.carried_out(await make_plan(room))


@pytest.mark.parametrize("story", STORIES)
async def test_a_cloud_that_is_silent_for_a_while_is_asked_again(room: Room, story: str) -> None:
    prepare, make_plan, expected = STORIES[story]
    await prepare(room)
    plan = await make_plan(room)
    chance = Random(7)

    def silent_now_and_then(method: str, target: str) -> None:
        is_silent = chance.random() < 0.4
        if is_silent and method not in {"create_node", "delete_node", "rename"}:
            raise UnreachableError("no answer")

    room.world.before = silent_now_and_then
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert room.world.live("demo") == expected


@pytest.mark.parametrize("story", ["resume", "delete"])
async def test_silence_is_never_taken_for_gone(room: Room, story: str) -> None:
    prepare, make_plan, _ = STORIES[story]
    await prepare(room)
    plan = await make_plan(room)

    def silent(method: str, target: str) -> None:
        if method in {"get_node", "list_nodes"}:
            raise UnreachableError("no answer")

    room.world.before = silent
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.UNKNOWN
    assert room.world.counted("create_node") == 1, "that of the first launch"
    assert room.world.counted("delete_node") == 0
    assert len(room.operations.unfinished()) == 1


async def test_a_deletion_ends_a_launch_that_was_broken_off(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())
    crash_at(1, "before", room)
    await broken_off(room, plan)
    (begun,) = room.operations.unfinished()
    room.session()
    assert (await room.delete()).state is OperationState.DONE
    assert room.operations.follow(begun.operation_id).state is OperationState.FAILED
    assert not room.world.nodes


async def test_a_deletion_waits_for_the_node_of_an_unanswered_creation(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())

    def crash(method: str, target: str) -> None:
        if method == "create_node":
            raise CrashError

    room.world.before = crash
    await broken_off(room, plan)
    room.session()
    plan = await room.operations.plan_delete(("demo",))
    assert not plan.nodes
    labels = {"tpudash-run": "demo", "tpudash-owner": "alice", "tpudash-attempt": "1"}
    looks = count(1)

    def late_node(method: str, target: str) -> None:
        if method == "list_nodes" and next(looks) == 3:
            room.world.made(node("demo-1"), "CREATING", labels=labels)

    room.world.before = late_node
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert not room.world.nodes
    assert room.world.counted("delete_node") == 1


async def test_a_launch_that_is_under_way_stops_when_the_run_is_deleted(room: Room) -> None:
    launching = room.operations.start(
        await room.operations.plan_launch(wish(zones=(ZONE, OTHER_ZONE)))
    )
    room.world.stocked_out = {ZONE}

    def somebody_deletes(method: str, target: str) -> None:
        if method == "get_operation":
            room.world.before = lambda method, target: None
            room.journal.begin(
                JournalledOperation(
                    operation_id="delete-demo",
                    kind=OperationKind.DELETE,
                    project=PROJECT,
                    run="demo",
                    title="Delete demo",
                    started=room.clock.now(),
                    updated=room.clock.now(),
                )
            )

    room.world.before = somebody_deletes
    assert (await room.ended(launching.operation_id)).state is OperationState.FAILED
    assert room.world.counted("create_node") == 1, "none in the second zone"
    assert not room.world.nodes


async def test_a_launch_of_other_settings_does_not_take_up_the_one_before(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())
    crashed = crash_at(1, "after", room)
    await broken_off(room, plan)
    assert crashed()
    room.session()
    progress = await room.launch(steps=1000)
    assert progress.state is OperationState.DONE
    assert room.spec().target_step == 1000
    assert room.world.live("demo") == ["demo-1"]


async def test_closing_leaves_the_operation_to_be_followed(room: Room) -> None:
    plan = await room.operations.plan_launch(wish())
    begun = room.operations.start(plan)
    await room.operations.aclose()
    assert room.operations._progress[begun.operation_id].state is OperationState.INTERRUPTED
    room.session()
    room.operations.follow(begun.operation_id)
    assert (await room.ended(begun.operation_id)).state is OperationState.DONE
    assert (await room.run()).state is RunState.LAUNCHING


@pytest.mark.parametrize(
    ("story", "method"), [("delete", "delete_node"), ("delete-queued", "delete_request")]
)
async def test_a_deletion_that_is_never_answered_is_left_to_be_taken_up(
    room: Room, story: str, method: str
) -> None:
    prepare, make_plan, _ = STORIES[story]
    await prepare(room)
    plan = await make_plan(room)

    def silent(called: str, target: str) -> None:
        if called == method:
            raise UnreachableError("no answer")

    room.world.before = silent
    progress = await room.carried_out(plan)
    assert progress.state is OperationState.UNKNOWN
    assert room.operations.left_behind(PROJECT) == ()
    room.world.before = lambda method, target: None
    room.session()
    (left,) = room.operations.left_behind(PROJECT)
    assert left.state is OperationState.INTERRUPTED
    room.operations.follow(left.operation_id)
    assert (await room.ended(left.operation_id)).state is OperationState.DONE
    assert not room.world.nodes
    assert not room.world.requests


@pytest.mark.parametrize("story", STORIES)
async def test_a_disk_that_is_full_stops_everything_before_it_is_done(
    tmp_path: Path, story: str
) -> None:
    prepare, make_plan, expected = STORIES[story]
    for number in count(2):  # without the first line nothing is begun
        room = Room(tmp_path / str(number))
        await prepare(room)
        plan = await make_plan(room)
        asked = len(room.world.calls)
        write, lines = room.journal._file.append, count(1)

        def append(record: Mapping[str, Any]) -> None:
            if next(lines) >= number:  # noqa: B023  called before the next turn
                raise ConfigurationError("can't write the journal of operations")
            write(record)  # noqa: B023

        room.journal._file.append = append  # type: ignore[method-assign]
        progress = await room.carried_out(plan)
        if next(lines) <= number:
            break
        assert progress.state in {OperationState.UNKNOWN, OperationState.DONE}, number
        changes = {"create_node", "delete_node", "create_request", "delete_request"}
        made = [one for one in room.world.calls[asked:] if one.split()[0] in changes]
        intents = [one for one in room.journal._file.records() if one["event"] == "intend"]
        assert len(made) <= len(intents), "nothing is done that was not saved before"
        room.session()
        if room.operations.unfinished():
            progress = await taken_up(room, make_plan, "followed")
        if progress.failure is not None and progress.state is OperationState.FAILED:
            # The name of the cloud's operation, which knew why there is no node, was not saved.
            assert progress.failure.error_class is ErrorClass.GONE
            assert not room.world.nodes
        else:
            assert room.world.live("demo") == expected, number
        assert room.world.most_live <= 1
