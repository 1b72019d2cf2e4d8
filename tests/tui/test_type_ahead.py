"""Keys typed before a dialog is there reach the dialog, in order, and nothing below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.widgets import Input

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
            focused = console.app.focused
            return focused.value if isinstance(focused, Input) else None

        await console.until(lambda: value() == text, f"the field holds {text!r}")
        assert "PAUSED" not in console.screen_text


async def test_keys_after_the_dialog_is_closed_again_mean_what_they_mean_below(
    open_console: Callable[..., AbstractAsyncContextManager[Console]],
) -> None:
    async with open_console() as console:
        type_at_once(console, "?", "escape", "p")
        await console.until(lambda: "PAUSED" in console.screen_text, "the display is paused")
