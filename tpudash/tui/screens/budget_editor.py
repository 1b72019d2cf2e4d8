"""The form of one budget: checked while it is typed, and asked about before anything is sent."""

from __future__ import annotations

import logging
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Static

from tpudash.domain.budget import BudgetDraft
from tpudash.errors import TpudashError
from tpudash.tui.budget_form import BudgetFields, draft_of, fields_of, problems_of, words_of
from tpudash.tui.screens.confirm import ConfirmDialog
from tpudash.tui.screens.overlay import Overlay
from tpudash.tui.widgets.line import Line
from tpudash.wording.text import safe_block, safe_text

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from tpudash.domain.budget import Budget, BudgetPort
    from tpudash.tui.acts import GuardedOperations
    from tpudash.tui.pane import HostApp

logger = logging.getLogger(__name__)

_LABELS: Final = {"name": "name", "amount": "amount", "thresholds": "alerts at"}


class BudgetEditor(Overlay[bool]):
    """Returns whether a budget was made or changed; nothing typed is lost when it was not.

    Args:
        account: The billing account that pays for the project.
        budget: The budget to change, or None for a new one.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(
        self,
        host: HostApp,
        port: BudgetPort,
        operations: GuardedOperations,
        account: str,
        budget: Budget | None,
    ) -> None:
        super().__init__(host, id="budget-editor")
        self._port = port
        self._operations = operations
        self._account = account
        self._budget = budget
        info = host.context.store.snapshot.connection
        self._project = info.project if info else ""
        self._is_asking = False

    def compose(self) -> ComposeResult:
        """Lay out the fields and the buttons."""
        start = fields_of(self._budget, self._project)
        with Vertical(classes="dialog small-dialog"):
            yield Line(id="budget-title", classes="dialog-title")
            for name, label in _LABELS.items():
                with Horizontal(classes="form-row"):
                    yield Static(label, classes="form-label", markup=False)
                    yield Input(getattr(start, name), id=f"budget-{name}", compact=True)
            yield Static(id="budget-problems", classes="form-problems", markup=False)
            with Horizontal(classes="dialog-buttons"):
                yield Button("Cancel", id="budget-cancel", compact=True)
                yield Button("Go on", id="budget-go", compact=True, variant="primary")
                yield Line(id="budget-keys", classes="dialog-keys")

    def on_mount(self) -> None:
        """Put the focus on what is most likely wanted: the amount."""
        known = self._budget
        name = safe_text(known.display_name or known.budget_id, 80) if known else ""
        title = f" Change the budget {name}" if known else " A new budget alert, by the month"
        self.query_one("#budget-title", Line).show(Text(title, "bold"))
        keys = Text("enter goes on  esc cancels", self.host.style_of("muted"))
        self.query_one("#budget-keys", Line).show(keys)
        for line in self.query(Input):
            line.cursor_blink = False
        self.query_one("#budget-amount").focus()
        self._review()

    @property
    def fields(self) -> BudgetFields:
        """The fields as they stand."""
        return BudgetFields(
            **{
                one.name: self.query_one(f"#budget-{one.name}", Input).value
                for one in fields(BudgetFields)
            }
        )

    @on(Input.Changed)
    def _review(self) -> None:
        """Say what is wrong."""
        problems = problems_of(self.fields, self._budget)
        words = "\n".join(f"{_LABELS[field]}: {text}" for field, text in problems.items())
        if not problems and self._draft() == BudgetDraft():
            words = "Nothing is changed yet."
        self._say(words)
        self.query_one("#budget-go", Button).disabled = bool(words)

    def _draft(self) -> BudgetDraft:
        return draft_of(self.fields, self._budget)

    def _say(self, words: str) -> None:
        self.query_one("#budget-problems", Static).update(Text(safe_block(words)))

    @on(Button.Pressed, "#budget-cancel")
    def _cancelled(self) -> None:
        self.dismiss(False)

    def action_close(self) -> None:
        """Close without asking for anything."""
        self.dismiss(False)

    @on(Button.Pressed, "#budget-go")
    @on(Input.Submitted)
    def _go(self) -> None:
        """Show the exact call, and send it if the answer is yes."""
        if problems_of(self.fields, self._budget) or self._is_asking:
            return
        draft = self._draft()
        if draft == BudgetDraft():
            return
        lines = words_of(draft, self._budget, self._account, self._project)
        title = "Change this budget?" if self._budget else "Create this budget?"
        yes = "Change" if self._budget else "Create"
        dialog = ConfirmDialog(self.host, title, lines, yes=yes)
        self.host.push_screen(dialog, lambda answer: self._send(draft) if answer else None)

    def _send(self, draft: BudgetDraft) -> None:
        self._is_asking = True
        self._say("Asking Cloud Billing ...")
        self.run_worker(self._sent(draft), name="budget", exit_on_error=False)

    async def _sent(self, draft: BudgetDraft) -> None:
        try:
            self._operations.check_control()
            if self._budget is None:
                made = await self._port.create(self._account, draft)
            else:
                made = await self._port.update(self._budget, draft)
        except TpudashError as error:
            parts = (f"{error}.", error.detail, error.hint)
            self._say("\n".join(part for part in parts if part))
        except Exception as error:
            logger.exception("the budget could not be sent")
            self._say(f"It is not known whether this was done: {type(error).__name__}: {error}")
        else:
            name = safe_text(made.display_name or made.budget_id, 80)
            word = "changed" if self._budget else "created"
            self.host.notify(f"The budget {name} was {word}.", markup=False)
            self.dismiss(True)
        finally:
            self._is_asking = False
