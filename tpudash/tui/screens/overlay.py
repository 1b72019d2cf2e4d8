"""What opens over the main screen: a base that is told of changes, and paragraphs to fill it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.keys import _character_to_key
from textual.screen import ModalScreen, ScreenResultType
from textual.widgets import Static

from tpudash.wording.text import safe_lines, safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from rich.style import Style
    from textual.binding import BindingType

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp


class Room(NamedTuple):
    """Width of a page or a dialog as the style sheet has it.

    Attributes:
        share: Of the screen's width.
        most: Cells.
        frame: Cells for border, padding and scroll bar.
    """

    share: float
    most: int
    frame: int


PAGE: Final = Room(0.94, 130, 6)
DIALOG: Final = Room(0.9, 110, 5)


class Overlay(ModalScreen[ScreenResultType]):
    """A dialog or a page; escape closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", show=False),
    ]
    AUTO_FOCUS = ""

    def __init__(self, host: HostApp, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.host = host
        self._owed: tuple[ScreenResultType | None] | None = None
        for key in host.hints.keys("quit"):
            if len(key) > 1:
                self.take_key(key, f"app.press({key!r})")

    def take_key(self, key: str, action: str) -> None:
        """Let a key of the user's keymap mean an action here, whatever else it meant."""
        name = _character_to_key(key) if len(key) == 1 else key
        self._bindings.key_to_bindings.pop(name, None)
        self._bindings.bind(name, action, show=False)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this and nothing else: at once, or when the screen that lies above it is gone.

        Textual takes away whatever is uppermost: a second `enter` in the queue of a dialog that is
        closed already would close what lies below it, or end the app.
        """
        stack = self.app.screen_stack
        if stack[-1] is self:
            return super().dismiss(result)
        if self in stack:
            self._owed = (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        """Close now if that was asked for while another screen lay above."""
        if self._owed is not None:
            self.dismiss(*self._owed)

    def apply(self, changes: ChangeSet) -> None:
        """Bring the overlay up to date."""

    def tick(self, now: datetime) -> None:
        """Move ages on; called once a second."""

    def action_close(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)


class Page(Overlay[None]):
    """An overlay that is one scrollable text; q closes it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "close", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(12)", show=False),
        Binding("pageup,b", "scroll(-12)", show=False),
    ]

    def __init__(self, host: HostApp, *, id: str) -> None:  # noqa: A002
        super().__init__(host, id=id)
        for key in host.hints.keys("copy"):
            self.take_key(key, "copy")

    def body(self) -> VerticalScroll:
        """Return the widgets of the page."""
        return VerticalScroll(Static(id="page-text", markup=False), id="page-body")

    def show(self, text: Text) -> None:
        """Show a text if it differs from the present one."""
        static = self.query_one("#page-text", Static)
        shown = static.content
        if not isinstance(shown, Text) or shown.plain != text.plain:
            static.update(text)

    @property
    def plain_text(self) -> str:
        """What is shown, as plain text."""
        content = self.query_one("#page-text", Static).content
        return content.plain if isinstance(content, Text) else ""

    def action_scroll(self, rows: int) -> None:
        """Scroll by so many rows."""
        self.query_one("#page-body").scroll_relative(y=rows, animate=False)

    async def action_copy(self) -> None:
        """Copy the whole page."""
        await self.host.run_action(f"app.copy_text({self.plain_text!r}, 'this page')")


class Paragraphs:
    """Builds a text of headings, sentences and fields from harmless pieces."""

    def __init__(self, host: HostApp, room: Room = PAGE) -> None:
        self._host = host
        self._shown = host.context.shown
        self._width = int(min(host.size.width * room.share, room.most)) - room.frame
        self.text = Text()

    def heading(self, words: str) -> None:
        """Begin a section."""
        if self.text.plain:
            self.text.append("\n")
        self.text.append(f"{safe_text(words, 200)}\n", self._host.style_of("primary", bold=True))

    def line(self, words: str, style: Style | str = "", *, indent: int = 2) -> None:
        """Add one line, which goes on below itself where it is long."""
        room = max(20, self._width - indent)
        text = safe_text(self._shown(words), 2_000)
        pieces = (
            textwrap.wrap(text, room, subsequent_indent="  ") if cell_len(text) > room else [text]
        )
        for piece in pieces:
            self.text.append(" " * indent + piece + "\n", style)

    def lines(self, words: str, style: Style | str = "", *, indent: int = 2) -> None:
        """Add a text of several lines."""
        for one in safe_lines(self._shown(words), 2_000, 400):
            self.text.append(" " * indent + one + "\n", style)

    def field(self, name: str, value: object, style: Style | str = "", *, width: int = 20) -> None:
        """Add a name and its value, which goes on below itself where it is long."""
        room = max(20, self._width - width - 3)
        words = safe_text(self._shown(str(value)), 1_000)
        pieces = textwrap.wrap(words, room) if cell_len(words) > room else [words]
        self.text.append(f"  {safe_text(name, 60):<{width}} ", self._host.style_of("muted"))
        self.text.append(f"{pieces[0] if pieces else ''}\n", style)
        for piece in pieces[1:]:
            self.text.append(f"{' ' * (width + 3)}{piece}\n", style)

    def styled(self, words: str, variable: str, *, bold: bool = False, indent: int = 2) -> None:
        """Add one line in a colour of the theme."""
        self.line(words, self._host.style_of(variable, bold=bold), indent=indent)
