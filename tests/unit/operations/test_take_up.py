"""A console that begins: what an earlier one left in the journal is gone on with, or shown."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.unit.operations.conftest import Room, wish
from tests.unit.operations.fake_cloud import PROJECT, CrashError
from tpudash.commands.operator_ports import TAKEN_UP_BY_ITSELF, take_up
from tpudash.domain.control import Control
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.operations.several import SeveralProjects
from tpudash.store.changes import Connected, ControlChanged
from tpudash.store.snapshot import ConnectionInfo
from tpudash.store.store import Store

if TYPE_CHECKING:
    from tests.unit.operations.fake_cloud import FakeClock


@dataclass
class Parts:
    """What `take_up` asks of a screen."""

    clock: FakeClock
    store: Store = field(default_factory=Store)


async def broken_off_launch(room: Room) -> str:
    """Let a session end just after it asked for the node, and return its operation."""

    def crash(method: str, target: str) -> None:
        if method == "create_node":
            raise CrashError

    room.world.after = crash
    begun = room.operations.start(await room.operations.plan_launch(wish()))
    with contextlib.suppress(CrashError):
        await room.ended(begun.operation_id)
    room.world.after = lambda method, target: None
    return begun.operation_id


async def begin_console(room: Room, *, is_ours: bool = True, operations: Any = None) -> Store:
    """Begin another session as a console does."""
    room.session()
    parts = Parts(room.clock)
    parts.store.apply(Connected(ConnectionInfo(PROJECT, None)))
    parts.store.apply(ControlChanged(Control(is_ours=is_ours)))
    await take_up(cast("Any", parts), operations or room.operations)
    return parts.store


@pytest.mark.parametrize("is_several", [False, True])
async def test_what_was_dropped_just_now_is_gone_on_with(room: Room, is_several: bool) -> None:
    known = await broken_off_launch(room)
    room.session()
    several = SeveralProjects({PROJECT: room.operations, "other": Room(room.folder).operations})
    await begin_console(room, operations=several if is_several else None)
    room = room if not is_several else _with(room, several)
    assert (await room.ended(known)).state is OperationState.DONE
    assert room.world.live("demo") == ["demo-1"]
    assert room.world.counted("create_node") == 1


def _with(room: Room, several: SeveralProjects) -> Room:
    room.operations = several._rooms[PROJECT]
    return room


async def test_what_is_older_is_shown_and_waits_to_be_asked(room: Room) -> None:
    known = await broken_off_launch(room)
    room.clock.pass_(TAKEN_UP_BY_ITSELF.total_seconds() + 1)
    store = await begin_console(room)
    shown = store.snapshot.operations[known]
    assert (shown.kind, shown.state) == (OperationKind.LAUNCH, OperationState.INTERRUPTED)
    room.operations.follow(known)
    assert (await room.ended(known)).state is OperationState.DONE
    assert room.world.counted("create_node") == 1


async def test_without_control_nothing_is_gone_on_with(room: Room) -> None:
    known = await broken_off_launch(room)
    store = await begin_console(room, is_ours=False)
    assert store.snapshot.operations[known].state is OperationState.INTERRUPTED
    assert known not in room.operations._tasks


async def test_what_a_living_process_works_on_is_shown_as_running(room: Room) -> None:
    known = await broken_off_launch(room)
    with room.journal.held("demo"):
        store = await begin_console(room)
        assert store.snapshot.operations[known].state is OperationState.RUNNING
        assert known not in room.operations._tasks
