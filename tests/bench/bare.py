"""The control: a Textual app that says hello, with the same environment as ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.tui.terminal import prepare_environment

prepare_environment()

from textual.app import App  # noqa: E402
from textual.widgets import Static  # noqa: E402

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Hello(App[None]):
    """One line."""

    def compose(self) -> ComposeResult:
        yield Static("hello there")


if __name__ == "__main__":
    Hello().run(mouse=False)
