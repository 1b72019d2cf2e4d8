"""Acts: nothing is started before it was shown and confirmed, and watch mode has none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from textual import events
from textual.widgets import Button, Input, Select

from tests.tui.conftest import Console
from tests.tui.conftest import run_console_under_test as console
from tests.tui.factories import make_node, make_progress, node_name, report_progress
from tpudash.domain.operation import LaunchRequest, OperationKind, OperationState
from tpudash.errors import CapacityError, NotFoundError
from tpudash.tui.actions import ACTIONS
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.palette import ActionProvider
from tpudash.tui.screens.launch import LaunchScreen
from tpudash.tui.screens.plan import PlanDialog


async def open_dialog(it: Console, *keys: str) -> PlanDialog:
    await it.press(*keys)
    await it.until(lambda: isinstance(it.app.screen, PlanDialog))
    dialog = it.app.screen
    assert isinstance(dialog, PlanDialog)
    return dialog


def started(it: Console) -> list[object]:
    return [call for call in it.operations.calls if call[0] == "start"]


def focused_id(it: Console) -> str | None:
    return it.app.focused.id if it.app.focused else None


async def test_resume_shows_calls_effects_and_warnings_with_the_focus_on_cancel() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "R")
        await it.until(lambda: dialog.plan)
        for fact in (
            "google.cloud.tpu.v2.Tpu/CreateNode",
            '"node_id": "demo-1"',
            "Checkpoints are kept.",
            "50 steps since",
            "$1.35 an hour",
        ):
            assert fact in dialog.plain_text, fact
        assert focused_id(it) == "plan-cancel"
        await it.press("enter")
        assert it.app.screen is it.app.main
        assert it.operations.calls == [("plan_resume", "demo")]


async def test_resume_starts_when_confirmed_and_is_followed_live() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "R")
        await it.until(lambda: dialog.plan)
        await it.press("right", "enter")
        assert started(it) == [("start", OperationKind.RESUME, "demo")]
        assert "RUNNING" in dialog.plain_text
        done = make_progress(
            kind=OperationKind.RESUME, state=OperationState.DONE, message="training again"
        )
        report_progress(it.store, done)
        await it.until(lambda: "training again" in dialog.plain_text)
        await it.press("enter")
        assert it.app.screen is it.app.main
        assert any("training again" in line for line in it.app.main.strip.lines)


async def test_an_operation_lives_on_when_its_dialog_closes() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "R")
        await it.until(lambda: dialog.plan)
        await it.press("right", "enter", "escape")
        assert it.app.screen is it.app.main
        report_progress(it.store, make_progress(message="half way"))
        await it.until(lambda: "half way" in it.screen_text)


async def test_delete_needs_the_name_typed() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        assert dialog.query_one("#plan-confirm", Button).disabled
        await it.press(*"dem", "enter")
        assert not started(it)
        assert isinstance(it.app.screen, PlanDialog)
        await it.press("o")
        assert dialog.query_one("#plan-word-input", Input).value == "demo"
        assert not dialog.query_one("#plan-confirm", Button).disabled
        await it.press("enter")
        assert started(it) == [("start", OperationKind.DELETE, "demo")]


async def test_a_wrong_name_deletes_nothing_whatever_is_pressed() -> None:
    async with console() as it:
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        await it.press(*"demo-1", "enter", "tab", "enter", "tab", "enter", "right", "enter")
        assert not started(it)


async def test_delete_of_a_node_names_it_in_full_and_marks_delete_all_at_once() -> None:
    async with console() as it:
        it.table.move_to(f"node:{node_name('stray')}")
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        assert it.operations.calls == [("plan_delete", (node_name("stray"),))]
        await it.press("escape")
        it.operations.calls.clear()
        it.table.move_to("run:demo")
        await it.press("space")
        it.table.move_to(f"node:{node_name('stray')}")
        await it.press("space")
        assert "2 marked" in it.screen_text
        await open_dialog(it, "D")
        await it.until(lambda: it.operations.calls)
        assert it.operations.calls == [("plan_delete", ("demo", node_name("stray")))]


@pytest.mark.parametrize("width", [60, 80, 200])
async def test_no_line_of_a_plan_is_broken_twice(width: int) -> None:
    async with console(size=(width, 24)) as it:
        it.operations.warnings = (" ".join(["word"] * 200),)
        dialog = await open_dialog(it, "R")
        await it.until(lambda: dialog.plan)
        await it.pilot.pause()
        lines = dialog.plain_text.split("\n")
        assert dialog.query_one("#plan-text").size.height == len(lines)


@pytest.mark.parametrize("where", ["plan_error", "start_error"])
async def test_a_refusal_is_shown_with_title_detail_and_hint(where: str) -> None:
    async with console() as it:
        error = CapacityError(
            "No capacity in us-central1-b", detail="[EID: 0x19] [red]none[/red]", hint="Wait."
        )
        setattr(it.operations, where, error)
        dialog = await open_dialog(it, "R")
        if where == "start_error":
            await it.until(lambda: dialog.plan)
            await it.press("right", "enter")
        await it.until(lambda: "No capacity in" in dialog.plain_text)
        assert "[EID: 0x19] [red]none[/red]" in dialog.plain_text
        assert "Wait." in dialog.plain_text
        await it.press("enter")
        assert it.app.screen is it.app.main


async def test_a_defect_in_planning_is_shown_and_not_fatal() -> None:
    async with console() as it:
        it.operations.plan_error = ZeroDivisionError("oh")
        dialog = await open_dialog(it, "R")
        await it.until(lambda: "ZeroDivisionError: oh" in dialog.plain_text)
        await it.press("escape")
        assert it.app.is_running


async def test_planning_that_never_ends_can_be_cancelled() -> None:
    async with console() as it:
        it.operations.never_answers = True
        dialog = await open_dialog(it, "R")
        assert "Checking with the cloud" in dialog.plain_text
        await it.press("escape")
        assert it.app.screen is it.app.main
        assert not started(it)


async def test_acts_say_why_they_cannot_be_done_here() -> None:
    async with console() as it:
        it.table.move_to(f"node:{node_name('stray')}")
        await it.press("R")
        assert it.app.screen is it.app.main
        assert "Select a run" in it.notices[-1]
        it.table.move_to(next(key for key in it.table.row_keys if key.startswith("tombstone:")))
        await it.press("D")
        assert "gone already" in it.notices[-1]
        assert not it.operations.calls


async def open_form(it: Console) -> LaunchScreen:
    await it.press("L")
    assert isinstance(it.app.screen, LaunchScreen)
    form = it.app.screen
    await it.until(lambda: form.values.runtime_version)
    return form


async def test_the_launch_form_offers_what_fits_and_says_size_and_price() -> None:
    async with console() as it:
        form = await open_form(it)
        assert form.values.zone == "us-central1-b"
        assert form.values.accelerator_type == "v2-8"
        assert form.values.runtime_version == "tpu-vm-tf-2.18.0-pjrt"
        for fact in ("4 chips", "1 host", "64 GiB HBM", "$1.35 an hour"):
            assert fact in it.screen_text, fact
        form.query_one("#launch-max_cost", Input).value = "13.5"
        await it.until(lambda: "lasts for 10.0 hours" in it.screen_text)
        form.query_one("#launch-accelerator_type", Select).value = "v3-8"
        await it.until(lambda: "128 GiB HBM" in it.screen_text)


async def test_the_launch_form_checks_while_typing_and_plans_only_what_is_right() -> None:
    async with console() as it:
        form = await open_form(it)
        button = form.query_one("#launch-plan", Button)
        assert button.disabled
        await it.press(*"Bad")
        await it.until(lambda: "lower-case letter first" in it.screen_text)
        form.query_one("#launch-run", Input).value = "demo"
        await it.until(lambda: "R resumes it" in it.screen_text)
        await it.press("ctrl+l")
        assert it.app.screen is form
        form.query_one("#launch-run", Input).value = "new-run"
        form.query_one("#launch-bucket", Input).value = "gs://bucket/"
        form.query_one("#launch-seed", Input).value = "7"
        await it.until(lambda: not button.disabled)
        dialog = await open_dialog(it, "ctrl+l")
        await it.until(lambda: dialog.plan)
        request = it.operations.calls[-1][1]
        assert request == LaunchRequest(
            run="new-run",
            accelerator_type="v2-8",
            zones=("us-central1-b",),
            bucket="gs://bucket",
            runtime_version="tpu-vm-tf-2.18.0-pjrt",
            steps=600,
            checkpoint_every_steps=100,
            seed=7,
        )


async def test_a_launch_that_is_not_possible_loses_nothing_that_was_typed() -> None:
    async with console() as it:
        form = await open_form(it)
        form.query_one("#launch-run", Input).value = "new-run"
        form.query_one("#launch-bucket", Input).value = "gs://bucket"
        it.operations.plan_error = CapacityError("Quota exceeded")
        await it.until(lambda: not form.query_one("#launch-plan", Button).disabled)
        dialog = await open_dialog(it, "ctrl+l")
        await it.until(lambda: "Quota exceeded" in dialog.plain_text)
        await it.press("escape")
        assert it.app.screen is form
        assert form.values.run == "new-run"


async def test_a_launch_that_was_started_closes_the_form_too() -> None:
    async with console() as it:
        form = await open_form(it)
        form.query_one("#launch-run", Input).value = "new-run"
        form.query_one("#launch-bucket", Input).value = "gs://bucket"
        await it.until(lambda: not form.query_one("#launch-plan", Button).disabled)
        dialog = await open_dialog(it, "ctrl+l")
        await it.until(lambda: dialog.plan)
        await it.press("right", "enter")
        assert started(it) == [("start", OperationKind.LAUNCH, "new-run")]
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.app.main)


async def test_a_zone_that_cannot_be_asked_falls_back_to_the_bundled_table() -> None:
    async with console() as it:

        async def refuse(zone: str) -> None:
            raise NotFoundError(f"Zone {zone} is not visible")

        it.operations.launch_choices = refuse  # type: ignore[assignment, method-assign]
        await it.press("L")
        await it.until(lambda: "bundled table is shown" in it.screen_text)
        form = it.app.screen
        assert isinstance(form, LaunchScreen)
        assert form.values.accelerator_type


async def test_the_palette_preempts_the_selected_node_of_an_emulator() -> None:
    async with console() as it:
        await it.press(":", *"preempt")
        await it.until(lambda: "preempt this node (emulator)" in it.screen_text)
        await it.press("enter")
        await it.until(lambda: it.emulator.calls)
        assert it.emulator.calls == [(make_node().name, 10.0)]


async def test_a_refused_preemption_is_said() -> None:
    async with console() as it:
        it.emulator.error = NotFoundError("No such node", hint="List them.")
        it.app.perform("preempt")
        await it.until(lambda: any("No such node. List them." in one for one in it.notices))


async def test_on_google_cloud_nothing_can_be_preempted_by_hand() -> None:
    async with console(ports=OperatorPorts()) as it:
        it.app.perform("preempt")
        await it.press(":", *"preempt")
        await it.pilot.pause(0.3)
        assert "preempt this node" not in it.screen_text
        assert not it.emulator.calls


async def test_watch_mode_has_no_acts_by_key_or_palette() -> None:
    async with console(is_watch=True) as it:
        for action in ACTIONS:
            if action.needs_operator:
                it.app.perform(action.id)
                for key in action.keys:
                    await it.press(key)
                assert it.app.screen is it.app.main, action.id
        provider = ActionProvider(it.app.screen)
        offered = {hit.text or hit.display async for hit in provider.discover()}  # type: ignore[union-attr]
        assert offered.isdisjoint({action.label for action in ACTIONS if action.needs_operator})
        assert not it.operations.calls
        assert not it.emulator.calls
        assert "launch" not in it.screen_text


def test_the_screen_imports_neither_the_operations_room_nor_the_cloud() -> None:
    code = (
        "import sys, tpudash.tui.app\n"
        "far = ('tpudash.operations', 'tpudash.gateways', 'tpudash.emulator', 'google', 'grpc')\n"
        "print([m for m in sys.modules if any(m == f or m.startswith(f + '.') for f in far)])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == "[]"


async def test_a_name_that_is_typed_in_a_burst_arrives_whole_and_in_order() -> None:
    async with console() as it:
        await it.press("down")
        dialog = await open_dialog(it, "D")
        await it.until(lambda: dialog.plan)
        assert focused_id(it) == "plan-cancel"
        word = dialog.plan.confirm_word if dialog.plan else ""
        line = dialog.query_one("#plan-word-input", Input)
        for key in [*f"{word}x", "backspace"]:
            # As a terminal sends them: the next before the last is through.
            character = key if len(key) == 1 else None
            name = {"-": "minus"}.get(key, key)
            it.app.post_message(events.Key(name, character))
        await it.until(lambda: line.value == word)
        await it.until(lambda: focused_id(it) == "plan-confirm")
        await it.press("enter")
        assert len(started(it)) == 1
