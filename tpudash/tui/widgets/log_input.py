"""The line in which a search or a filter of the log is typed."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from tpudash.tui.widgets.line import Line

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Typing(StrEnum):
    """What is being typed."""

    SEARCH = "search"
    FILTER = "filter"


class LogInput(Horizontal):
    """A label and a line to type in; hidden unless it is used."""

    DEFAULT_CSS = """
    LogInput { height: 1; display: none; }
    LogInput Line { width: 12; }
    LogInput Input { width: 1fr; }
    """
    BINDINGS: ClassVar = [Binding("escape", "give_up", show=False)]

    class Typed(Message):
        """The text changed, or its typing ended.

        Attributes:
            is_done: Whether it was ended with enter; a search then goes to the next match.
            is_given_up: Whether it was ended with escape, which empties it.
        """

        def __init__(
            self, what: Typing, text: str, *, is_done: bool = False, is_given_up: bool = False
        ) -> None:
            super().__init__()
            self.what = what
            self.text = text
            self.is_done = is_done
            self.is_given_up = is_given_up

    def __init__(self) -> None:
        super().__init__()
        self._what = Typing.SEARCH
        self._label = Line()
        self._input = Input(compact=True)
        self._input.cursor_blink = False

    def compose(self) -> ComposeResult:
        """Lay out the label and the line."""
        yield self._label
        yield self._input

    def begin(self, what: Typing, text: str) -> None:
        """Open the line with a text in it."""
        self._what = what
        self._label.show(Text(f" {what}: "))
        with self._input.prevent(Input.Changed):
            self._input.value = text
        self.display = True
        self._input.focus()

    def action_give_up(self) -> None:
        """Close the line and empty what was typed."""
        self.display = False
        self.post_message(self.Typed(self._what, "", is_given_up=True))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.post_message(self.Typed(self._what, event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.display = False
        self.post_message(self.Typed(self._what, event.value, is_done=True))
