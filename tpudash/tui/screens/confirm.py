"""A short question with two answers; the harmless one has the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.widgets.line import Line
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from tpudash.tui.pane import HostApp


class ConfirmDialog(Overlay[bool]):
    """Asks once; returns whether the answer was yes.

    Args:
        lines: What the user should know, a sentence each.
        yes: Label of the button that goes ahead.
        no: Label of the button that does not.
        yes_key: A key that goes ahead at once.
        id: What is asked, since one question may lie over another.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(
        self,
        host: HostApp,
        title: str,
        lines: tuple[str, ...],
        *,
        yes: str,
        no: str = "Cancel",
        yes_key: str = "y",
        id: str = "confirm-dialog",  # noqa: A002
    ) -> None:
        super().__init__(host, id=id)
        self._title = title
        self._lines = lines
        self._yes = yes
        self._no = no
        self._yes_key = yes_key
        self.take_key(yes_key, "answer(True)")

    def compose(self) -> ComposeResult:
        """Lay out the question and its answers."""
        with Vertical(classes="dialog small-dialog"):
            yield Line(id="confirm-title", classes="dialog-title")
            yield Static(
                Text("\n".join(f" {safe_text(line, 400)}" for line in self._lines)),
                id="confirm-text",
            )
            with Horizontal(classes="dialog-buttons"):
                yield Button(self._no, id="confirm-no", compact=True)
                yield Button(self._yes, id="confirm-yes", compact=True, variant="warning")
                yield Line(id="confirm-keys", classes="dialog-keys")

    def on_mount(self) -> None:
        """Put the focus on the harmless answer."""
        self.query_one("#confirm-title", Line).show(Text(f" {self._title}", "bold"))
        keys = f"{self._yes_key} {self._yes.lower()}  esc {self._no.lower()}"
        self.query_one("#confirm-keys", Line).show(Text(keys, self.host.style_of("muted")))
        self.query_one("#confirm-no").focus()

    @on(Button.Pressed, "#confirm-yes")
    def _yes_pressed(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#confirm-no")
    def _no_pressed(self) -> None:
        self.dismiss(False)

    def action_answer(self, yes: bool) -> None:
        """Answer by key."""
        self.dismiss(yes)

    def action_close(self) -> None:
        """Close; that is a no."""
        self.dismiss(False)
