"""The supervisor by class of failure, its plan, its lease, and the journal that it survives by."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.operations.conftest import RUN_URL, Room, node
from tests.unit.operations.fake_cloud import OTHER_ZONE, ZONE, refusal
from tpudash.domain.failure import ErrorClass, RetryPolicy
from tpudash.domain.operation import OperationState, ResumeChanges, SupervisionWish
from tpudash.errors import UsageError
from tpudash.operations.journal_compaction import needed
from tpudash.operations.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.domain.operation import OperationProgress

WISH = SupervisionWish(max_attempts=5)


async def preempted(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.world.set_state(node("demo-1"), "PREEMPTED")


async def supervised(room: Room, wish: SupervisionWish = WISH) -> OperationProgress:
    plan = await room.operations.plan_supervise("demo", wish)
    return await room.carried_out(plan)


def finish_when_ready(room: Room, node_id: str, zone: str = ZONE) -> Callable[[str, str], None]:
    """Let the agent finish the run as soon as a node is READY."""

    def look(method: str, target: str) -> None:
        found = room.world.nodes.get(node(node_id, zone))
        if found is not None and found.state == "READY":
            room.agent_writes(2, "FINISHED", step=600)

    return look


async def test_a_preempted_run_is_resumed_until_it_is_finished(room: Room) -> None:
    await preempted(room)
    room.world.before = finish_when_ready(room, "demo-2")
    progress = await supervised(room)
    assert progress.state is OperationState.DONE
    assert progress.steps_done == 1
    assert not room.operations.unfinished()
    lease = json.loads(room.world.files[f"{RUN_URL}/supervisor.json"])
    assert lease["ended"] is not None


async def test_a_stock_out_goes_to_the_next_zone(room: Room) -> None:
    await preempted(room)
    room.world.stocked_out = {ZONE}
    room.world.before = finish_when_ready(room, "demo-2", OTHER_ZONE)
    wish = replace(WISH, changes=ResumeChanges(zones=(ZONE, OTHER_ZONE)))
    assert (await supervised(room, wish)).state is OperationState.DONE
    assert room.world.live("demo") == ["demo-2"]


async def test_tries_without_capacity_wait_longer_and_are_counted(room: Room) -> None:
    await preempted(room)
    room.world.stocked_out = {ZONE, OTHER_ZONE}
    began = room.clock.monotonic()
    progress = await supervised(room)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is ErrorClass.STOCKOUT
    assert "5 tries are used up" in progress.message
    assert room.clock.monotonic() - began > 60
    assert room.world.counted("create_node") == 1 + 5


@pytest.mark.parametrize("kind", [ErrorClass.QUOTA, ErrorClass.PERMISSION, ErrorClass.BAD_REQUEST])
async def test_what_waiting_does_not_cure_ends_it(room: Room, kind: ErrorClass) -> None:
    await preempted(room)

    def refuse(method: str, target: str) -> None:
        if method == "create_node":
            raise refusal(kind, f"no: {kind}")

    room.world.before = refuse
    progress = await supervised(room)
    assert progress.state is OperationState.FAILED
    assert progress.failure is not None
    assert progress.failure.error_class is kind
    assert f"no: {kind}" in progress.failure.evidence
    assert not room.operations.unfinished()


async def test_internal_errors_are_borne_a_few_times(room: Room) -> None:
    await preempted(room)

    def refuse(method: str, target: str) -> None:
        if method == "create_node":
            raise refusal(ErrorClass.GONE, "gone", RetryPolicy.NEVER)

    room.world.before = refuse
    progress = await supervised(room)
    assert "in a row" in progress.message


async def test_a_stalled_run_is_told_and_left_alone_without_the_word(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.clock.pass_(600)
    plan = await room.operations.plan_supervise("demo", WISH)
    begun = room.operations.start(plan)
    while "ALARM" not in room.operations._progress[begun.operation_id].message:
        await room.clock.sleep(1)
    assert room.world.counted("delete_node") == 0
    await room.operations.aclose()


@pytest.mark.parametrize(
    "state",
    ["RESTARTING", "REPAIRING", "REIMAGING", "STARTING", "STOPPING", "STOPPED", "HIDING", "HIDDEN",
     "UNHIDING", "UNKNOWN", "STATE_UNSPECIFIED", "17"],
)  # fmt: skip
@pytest.mark.parametrize("age_s", [5, 7_200])
async def test_a_node_that_is_not_dead_for_sure_is_never_deleted(
    room: Room, state: str, age_s: float
) -> None:
    await room.launch()
    room.agent_writes(1)
    room.world.set_state(node("demo-1"), state)
    room.clock.pass_(age_s)
    room.operations.start(await room.operations.plan_supervise("demo", WISH))
    for _ in range(60):
        await room.clock.sleep(10)
    assert room.world.counted("delete_node") == 0
    assert room.world.counted("create_node") == 1
    await room.operations.aclose()


async def test_a_stalled_run_is_resumed_with_the_word(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.clock.pass_(600)
    room.world.before = finish_when_ready(room, "demo-2")
    progress = await supervised(room, replace(WISH, resume_stalled=True))
    assert progress.state is OperationState.DONE
    assert room.world.live("demo") == ["demo-2"]


async def test_there_is_one_supervisor_for_a_run(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    room.operations.start(await room.operations.plan_supervise("demo", WISH))
    first = room.operations
    room.session()
    with pytest.raises(RefusedError, match="supervised already"):
        await room.operations.plan_supervise("demo", WISH)
    await first.aclose()


async def test_a_supervisor_on_another_machine_is_respected_and_can_be_ended(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    now = room.clock.now().isoformat()
    lease = {"schema": 1, "run": "demo", "owner": "bob", "host": "elsewhere", "pid": 1,
             "token": "t", "since": now, "updated": now, "max_attempts": 9}  # fmt: skip
    room.world.files[f"{RUN_URL}/supervisor.json"] = json.dumps(lease).encode()
    with pytest.raises(RefusedError) as caught:
        await room.operations.plan_supervise("demo", WISH)
    assert "bob on elsewhere" in caught.value.detail
    assert "Supervised by bob on elsewhere" in (await room.run()).reason
    plan = await room.operations.plan_stand_down("demo")
    assert (await room.carried_out(plan)).state is OperationState.DONE
    assert (await room.operations.plan_supervise("demo", WISH)).kind == "supervise"


async def test_a_supervisor_ends_when_it_is_switched_off(room: Room) -> None:
    await room.launch()
    room.agent_writes(1)
    begun = room.operations.start(await room.operations.plan_supervise("demo", WISH))
    await room.clock.sleep(1)
    await room.carried_out(await room.operations.plan_stand_down("demo"))
    progress = await room.ended(begun.operation_id)
    assert progress.state is OperationState.DONE
    assert "switched off" in progress.message


async def test_limits_that_make_no_sense_are_refused(room: Room) -> None:
    await room.launch()
    for wish in (SupervisionWish(max_attempts=0), SupervisionWish(max_cost_usd=0.0)):
        with pytest.raises(UsageError):
            await room.operations.plan_supervise("demo", wish)


async def test_a_long_journal_keeps_what_is_needed(room: Room) -> None:
    await room.launch()
    room.operations._journal.note("launch-x", "nothing")
    records = room.operations._journal._file.records()
    ended = tuple(
        {"operation": f"old-{at}", "event": event, "time": "2026-01-01T00:00:00+00:00"}
        for at in range(300)
        for event in ("begin", "progress", "end")
    )
    open_ones = (
        {"operation": "open", "event": "begin"},
        {"operation": "open", "event": "intend", "node": "n"},
        *({"operation": "open", "event": "progress", "message": str(at)} for at in range(50)),
    )
    kept = needed((*records, *ended, *open_ones))
    assert len([one for one in kept if str(one.get("operation")).startswith("old")]) == 200
    assert [one.get("message") for one in kept if one.get("operation") == "open"] == [
        None, None, "49",
    ]  # fmt: skip
    assert len([one for one in kept if one["event"] == "spec"]) == 1
