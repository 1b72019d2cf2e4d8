"""The dialog of every act: ask for the plan, show it, confirm it, follow it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Input, Static

from tpudash.domain.operation import OperationState
from tpudash.errors import TpudashError
from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.screens.plan_text import error_text, plan_text, progress_text
from tpudash.tui.widgets.line import Line
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from tpudash.domain.operation import OperationProgress, OperationsPort, Plan
    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp

logger = logging.getLogger(__name__)

FRAME_ROWS: Final = 9
"""Border, title, the line for the name, the buttons, and the gaps between them."""


class PlanDialog(Overlay[bool]):
    """Shows what would be done; nothing is done before the user says so.

    Returns whether an operation was started.

    Args:
        title: What is being planned, in a few words.
        make_plan: Asks the operations room for the plan; changes nothing.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,right", "other_button", show=False),
        Binding("pagedown,down", "scroll(4)", show=False),
        Binding("pageup,up", "scroll(-4)", show=False),
    ]

    def __init__(
        self,
        host: HostApp,
        operations: OperationsPort,
        title: str,
        make_plan: Callable[[], Awaitable[Plan]],
    ) -> None:
        super().__init__(host, id="plan-dialog")
        self._operations = operations
        self._title = title
        self._make_plan = make_plan
        self.plan: Plan | None = None
        self.operation_id: str | None = None
        self._is_typing = False
        """Whether the name is being typed: enter then means its end, not the focused Cancel."""

    def compose(self) -> ComposeResult:
        """Lay out title, text, the line for the name, and the buttons."""
        with Vertical(id="plan-box", classes="dialog"):
            yield Line(id="plan-title", classes="dialog-title")
            with VerticalScroll(id="plan-body", can_focus=False):
                yield Static(id="plan-text", markup=False)
            with Horizontal(id="plan-word"):
                yield Line(id="plan-word-label")
                yield Input(id="plan-word-input", compact=True, select_on_focus=False)
            with Horizontal(id="plan-buttons", classes="dialog-buttons"):
                yield Button("Cancel", id="plan-cancel", compact=True)
                yield Button("Confirm", id="plan-confirm", compact=True, variant="warning")
                yield Line(id="plan-keys", classes="dialog-keys")

    def on_mount(self) -> None:
        """Begin to plan; until there is a plan only Cancel can be chosen."""
        self.query_one("#plan-word").display = False
        self.query_one("#plan-word-input", Input).cursor_blink = False
        self._confirm.display = False
        self._show(self._title, Text(" Checking with the cloud ..."), "esc cancel")
        self._cancel.focus()
        self.run_worker(self._ask(), name="plan", exit_on_error=False)

    @property
    def _cancel(self) -> Button:
        return self.query_one("#plan-cancel", Button)

    @property
    def _confirm(self) -> Button:
        return self.query_one("#plan-confirm", Button)

    @property
    def plain_text(self) -> str:
        """What the dialog says, as plain text."""
        content = self.query_one("#plan-text", Static).content
        return content.plain if isinstance(content, Text) else str(content)

    async def _ask(self) -> None:
        try:
            plan = await self._make_plan()
        except TpudashError as error:
            self._fail(error)
        except Exception as error:
            logger.exception("planning failed: %s", self._title)
            self._fail(_unexpected(error))
        else:
            self._offer(plan)

    def _offer(self, plan: Plan) -> None:
        self.plan = plan
        self._confirm.display = True
        keys = "tab moves  enter chooses  esc cancels"
        if plan.confirm_word is not None:
            self._confirm.disabled = True
            label = self.query_one("#plan-word-label", Line)
            label.show(Text(f" Type {safe_text(plan.confirm_word, 80)} to confirm: ", "bold"))
            label.styles.width = label.text.cell_len
            self.query_one("#plan-word").display = True
            keys = "type it, then enter  esc cancels"
        self._show(plan.title, plan_text(plan, self.host), keys)
        self._cancel.focus()

    def _fail(self, error: TpudashError) -> None:
        self._confirm.display = False
        self.query_one("#plan-word").display = False
        self._cancel.label = "Close"
        self._show(f"{self._title}: not possible", error_text(error, self.host), "enter closes")
        self._cancel.focus()

    def _show(self, title: str, text: Text, keys: str) -> None:
        self.query_one("#plan-title", Line).show(Text(f" {safe_text(title, 200)}", "bold"))
        self.query_one("#plan-text", Static).update(text)
        self.query_one("#plan-keys", Line).show(Text(keys, self.host.style_of("muted")))

    def on_resize(self, event: events.Resize) -> None:
        """Leave room for the buttons, however long the plan is."""
        self.query_one("#plan-body").styles.max_height = max(3, event.size.height - FRAME_ROWS)

    def on_key(self, event: events.Key) -> None:
        """Let the name be typed at once, wherever the focus is.

        The focus stays where it is until the name is complete: keys that were typed fast are under
        way to what has the focus, and those that came after it moved would overtake them.
        """
        line = self.query_one("#plan-word-input", Input)
        if not self.query_one("#plan-word").display or line.has_focus:
            return
        if event.is_printable and event.character:
            line.insert_text_at_cursor(event.character)
        elif event.key == "backspace":
            line.action_delete_left()
        else:
            return
        event.stop()
        event.prevent_default()
        self._is_typing = True
        self._word_changed()

    def on_mouse_down(self) -> None:
        """A click means the button that it is on, whatever was typed."""
        self._is_typing = False

    def on_descendant_focus(self) -> None:
        """Whoever moved to a button means that button."""
        self._is_typing = False

    @on(Input.Changed, "#plan-word-input")
    def _word_changed(self) -> None:
        line = self.query_one("#plan-word-input", Input)
        is_word = self._is_word(line.value)
        self._confirm.disabled = not is_word
        if not line.has_focus:
            (self._confirm if is_word else self._cancel).focus()

    @on(Input.Submitted, "#plan-word-input")
    def _word_submitted(self, event: Input.Submitted) -> None:
        if self._is_word(event.value):
            self._start()

    def _is_word(self, value: str) -> bool:
        return self.plan is not None and value.strip() == self.plan.confirm_word

    @on(Button.Pressed, "#plan-cancel")
    def _cancel_pressed(self) -> None:
        if not self._is_typing:
            self.action_close()

    @on(Button.Pressed, "#plan-confirm")
    def _confirm_pressed(self) -> None:
        self._start()

    def _start(self) -> None:
        if self.plan is None or self.operation_id is not None:
            return
        try:
            progress = self._operations.start(self.plan)
        except TpudashError as error:
            self._fail(error)
            return
        self.operation_id = progress.operation_id
        self._confirm.display = False
        self.query_one("#plan-word").display = False
        self._cancel.label = "Close"
        self._cancel.focus()
        self._follow(progress, self.host.context.now())

    def apply(self, changes: ChangeSet) -> None:
        """Follow the operation that was started."""
        if self.operation_id in changes.operations:
            self.tick(self.host.context.now())

    def tick(self, now: datetime) -> None:
        """Move the operation's age on."""
        if self.operation_id is None:
            return
        progress = self.host.context.store.snapshot.operations.get(self.operation_id)
        if progress is not None:
            self._follow(progress, now)

    def _follow(self, progress: OperationProgress, now: datetime) -> None:
        is_running = progress.state is OperationState.RUNNING
        again = self.host.hints.fill("closing leaves it running; {operations} shows it again")
        keys = again if is_running else "enter closes"
        title = self.plan.title if self.plan else self._title
        self._show(title, progress_text(progress, self.host, now), keys)

    def action_close(self) -> None:
        """Close; an operation that was started goes on."""
        self.dismiss(self.operation_id is not None)

    def action_other_button(self) -> None:
        """Move between the buttons."""
        has_other = self._confirm.display and not self._confirm.disabled
        (self._confirm if self._cancel.has_focus and has_other else self._cancel).focus()

    def action_scroll(self, rows: int) -> None:
        """Scroll the plan."""
        self.query_one("#plan-body").scroll_relative(y=rows, animate=False)


def _unexpected(error: Exception) -> TpudashError:
    return TpudashError(
        "Something went wrong inside tpudash",
        detail=f"{type(error).__name__}: {error}",
        hint="Our own log has the details; `tpudash paths` says where it lies.",
    )
