"""What an operator's console has besides plans: shells, control of the project, what was left."""

from __future__ import annotations

from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import (
    FakeSupervision,
    list_nodes,
    make_holder,
    make_node,
    make_progress,
    make_request,
    node_name,
    report_progress,
)
from tests.tui.test_acts import open_dialog, started
from tpudash.domain.control import Control
from tpudash.domain.node import Worker
from tpudash.domain.operation import OperationState
from tpudash.errors import NotFoundError
from tpudash.store.changes import ControlChanged
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.screens.plan import PlanDialog
from tpudash.tui.widgets.node_rows import node_key, request_key, tombstone_key


async def test_a_request_without_a_run_can_be_deleted() -> None:
    async with console() as it:
        await it.until(lambda: it.table.move_to(request_key(make_request().name)))
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        assert ("plan_delete", (make_request().name,)) in it.operations.calls


async def test_all_marked_rows_are_deleted_together_and_the_gone_are_left_out() -> None:
    async with console(size=(120, 40)) as it:
        for key in (node_key(node_name("stray")), node_key(node_name("vision-1"))):
            it.table.move_to(key)
            await it.press("space")
        it.table.move_to(tombstone_key(node_name("old-1")))
        await it.press("space")
        assert "3 marked" in it.screen_text
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        (call,) = [call for call in it.operations.calls if call[0] == "plan_delete"]
        assert set(call[1]) == {node_name("stray"), node_name("vision-1")}


async def test_s_on_a_node_opens_a_shell_and_elsewhere_sorts() -> None:
    async with console(size=(120, 40)) as it:
        assert "s sort" in it.screen_text
        await it.press("s")
        assert it.nodes.title_note() == "by state"
        assert not it.shell.calls
        it.table.move_to(node_key(node_name("demo-1")))
        await it.until(lambda: "s shell" in it.screen_text)
        await it.press("s")
        await it.until(lambda: it.shell.calls)
        assert it.shell.calls == [("demo-1", 0)]
        assert it.nodes.title_note() == "by state"


async def test_on_a_slice_of_several_workers_it_asks_which_one() -> None:
    async with console(size=(120, 40)) as it:
        workers = tuple(Worker(at, f"10.0.0.{at}") for at in range(4))
        others = [node for node in it.store.snapshot.nodes.values() if node.node_id != "demo-1"]
        list_nodes(it.store, make_node("demo-1", workers=workers), *others)
        it.table.move_to(node_key(node_name("demo-1")))
        await it.press("s")
        await it.until(lambda: "worker 3  10.0.0.3" in it.screen_text)
        await it.press("down", "down", "enter")
        await it.until(lambda: it.shell.calls)
        assert it.shell.calls == [("demo-1", 2)]


async def test_a_shell_that_cannot_be_had_says_why() -> None:
    async with console() as it:
        it.shell.error = NotFoundError("worker 0 has no machine now", hint="It is PREEMPTED.")
        it.table.move_to(node_key(node_name("demo-1")))
        await it.press("s")
        await it.until(lambda: any("no machine now. It is PREEMPTED." in one for one in it.notices))


async def test_a_console_without_control_changes_nothing_and_says_who_has_it() -> None:
    async with console(size=(120, 40)) as it:
        it.control.control = Control(is_ours=False, holder=make_holder("bob"))
        it.store.apply(ControlChanged(it.control.control))
        await it.until(lambda: "VIEWING" in it.screen_text)
        assert any("bob has control since 10:00 UTC on bastion pts/3" in one for one in it.notices)
        for key in ("L", "R", "D"):
            await it.press(key)
            assert it.app.screen is it.app.main
            assert "T takes it over" in it.notices[-1]
        assert not it.operations.calls


async def test_control_is_taken_over_only_when_that_is_confirmed() -> None:
    async with console(size=(120, 40)) as it:
        it.control.control = Control(is_ours=False, holder=make_holder("bob"))
        it.store.apply(ControlChanged(it.control.control))
        await it.until(lambda: "VIEWING" in it.screen_text)
        await it.press("T")
        assert "bob has control" in it.screen_text
        await it.press("enter")
        assert not it.control.calls
        await it.press("T", "T")
        await it.until(lambda: "VIEWING" not in it.screen_text)
        assert it.control.calls == ["take"]
        await it.press("R")
        assert isinstance(it.app.screen, PlanDialog)


async def test_control_lost_while_a_plan_is_open_keeps_it_from_beginning() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "R")
        await it.until(lambda: dialog.plan)
        it.control.control = Control(is_ours=False, holder=make_holder("bob"))
        await it.press("right", "enter")
        await it.until(lambda: "another console has control" in dialog.plain_text)
        assert not started(it)


async def test_what_was_left_behind_is_followed_when_that_is_confirmed() -> None:
    async with console(size=(120, 40)) as it:
        left = make_progress("op-7", state=OperationState.INTERRUPTED, message="creating demo-2")
        it.operations.left = (left,)
        report_progress(it.store, left)
        await it.press("o")
        await it.until(lambda: "F follows" in it.screen_text)
        await it.press("F")
        await it.until(lambda: "creating demo-2" in it.screen_text)
        await it.press("right", "enter")
        await it.until(lambda: ("follow", "op-7") in it.operations.calls)


async def test_supervision_is_offered_only_where_somebody_can_do_it() -> None:
    async with console() as it:
        await it.press("A")
        assert it.app.screen is it.app.main
        assert "supervise" not in it.screen_text
    supervision = FakeSupervision()
    ports = OperatorPorts(supervision=supervision)
    async with console(ports=ports, size=(160, 40)) as it:
        assert "A supervise" in it.screen_text
        dialog = await open_dialog(it, "A")
        await it.until(lambda: dialog.plan)
        assert supervision.calls == [("demo", True)]
