"""Keys typed before a dialog is there reach the dialog, in order, and nothing below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.widgets import Input

from tpudash.tui.screens.confirm import ConfirmDialog
from tpudash.tui.widgets.nodes_pane import NodesPane

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.tui.conftest import Console

NAMES = {":": "colon", "?": "question_mark"}


def type_at_once(console: Console, *keys: str) -> None:
    """Post keys as a terminal does that sends them in one burst."""
    for key in keys:
        character = key if len(key) == 1 else None
        console.app.post_message(events.Key(NAMES.get(key, key), character))


@pytest.mark.parametrize(
    ("opener", "text"), [(":", "preempt"), ("L", "vision"), ("D", "demo")], ids=str
)
async def test_what_is_typed_ahead_stands_in_the_dialogs_field(
    open_console: Callable[..., AbstractAsyncContextManager[Console]], opener: str, text: str
) -> None:
    async with open_console() as console:
        type_at_once(console, opener, *text)

        def value() -> str | None:
            focused, fields = console.app.focused, console.app.screen.query(Input)
            if isinstance(focused, Input):
                return focused.value
            return fields.first().value if opener == "D" and fields else None

        await console.until(lambda: value() == text, f"the field holds {text!r}")
        assert "PAUSED" not in console.screen_text


async def test_keys_after_the_dialog_is_closed_again_mean_what_they_mean_below(
    open_console: Callable[..., AbstractAsyncContextManager[Console]],
) -> None:
    async with open_console() as console:
        type_at_once(console, "?", "escape", "p")
        await console.until(lambda: "PAUSED" in console.screen_text, "the display is paused")


@pytest.mark.parametrize(
    "keys",
    [
        (":", *"theme", "down", "enter", "enter", "enter", "enter"),
        (":", "escape", "escape", "escape"),
        (":", *"theme", "down", "enter", "escape", "enter", "escape"),
        ("?", "escape", "q", "enter", "escape"),
        ("enter", "enter", "enter"),
        ("?", "escape", "?", "escape", "?", "escape", "o", "escape", "o"),
        ("enter", "escape", "enter", "escape", "enter"),
        ("D", "escape", "enter", "escape", "escape"),
        ("q", "escape", "escape", "n", "enter"),
    ],
    ids=" ".join,
)
async def test_keys_for_what_is_closed_already_close_nothing_else(
    open_console: Callable[..., AbstractAsyncContextManager[Console]], keys: tuple[str, ...]
) -> None:
    async with open_console() as console:
        theme, names = console.app.theme, sorted(console.app.available_themes)
        if specs := console.app.settings.themes:
            names = [spec.name for spec in specs]
        type_at_once(console, *keys)
        await console.pilot.pause()
        for _ in range(3):
            await console.press("escape")
        assert len(console.app.screen_stack) == 1
        assert console.app.is_running
        assert console.app.theme in {theme, names[(names.index(theme) + 1) % len(names)]}


async def test_a_dialog_told_to_close_below_another_closes_when_that_is_gone(
    open_console: Callable[..., AbstractAsyncContextManager[Console]],
) -> None:
    async with open_console() as console:
        answers: list[bool | None] = []
        below = ConfirmDialog(console.app, "below", ("?",), yes="Yes")
        above = ConfirmDialog(console.app, "above", ("?",), yes="Yes", id="above")
        await console.app.push_screen(below, answers.append)
        await console.app.push_screen(above)
        below.dismiss(True)
        assert console.app.screen is above
        above.dismiss(False)
        await console.until(lambda: len(console.app.screen_stack) == 1, "both are closed")
        await console.until(lambda: answers == [True], "the answer has come")


async def test_the_question_about_leaving_is_asked_over_another_question_too(
    open_console: Callable[..., AbstractAsyncContextManager[Console]],
) -> None:
    async with open_console() as console:
        other = ConfirmDialog(console.app, "Another question", ("?",), yes="Yes")
        await console.app.push_screen(other)
        await console.press("ctrl+q")
        await console.until(lambda: "Leave tpudash?" in console.screen_text, "it asks")
        assert len(console.app.screen_stack) == 3
        await console.press("escape")
        assert console.app.screen is other


async def test_details_that_are_wanted_twice_open_once(
    open_console: Callable[..., AbstractAsyncContextManager[Console]],
) -> None:
    async with open_console() as console:
        subject = console.app.context.subject
        assert subject is not None
        for _ in range(3):
            console.app.post_message(NodesPane.DetailsWanted(subject))
        await console.until(lambda: len(console.app.screen_stack) == 2, "the details are open")
        await console.pilot.pause()
        assert len(console.app.screen_stack) == 2
        assert console.app.is_running
