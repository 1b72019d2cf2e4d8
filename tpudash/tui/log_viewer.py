"""The logs pane by itself, on a file or on what a pipe brings: `tpudash logs --file F`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.keys import _character_to_key
from textual.scrollbar import ScrollBar

from tpudash.config.keymap import canonical_key, resolve_keymap
from tpudash.cost.prices import PriceBook
from tpudash.store.store import Store
from tpudash.tui.action import Situation
from tpudash.tui.actions import ACTIONS
from tpudash.tui.handlers import copy_text
from tpudash.tui.pane import HostApp, PaneId, ViewContext, ViewOptions
from tpudash.tui.terminal import resume_collecting
from tpudash.tui.theming import textual_theme
from tpudash.tui.widgets.footer import KeyFooter
from tpudash.tui.widgets.logs_pane import LogsPane
from tpudash.tui.widgets.solid_scrollbar import SolidScrollBarRender

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from tpudash.clock import Clock
    from tpudash.store.log_lines import LogLinesSource
    from tpudash.tui.action import Action
    from tpudash.tui.settings import ConsoleSettings

STYLES: Final = Path(__file__).parent / "styles"
POLL_S: Final = 0.25
ELSEWHERE: Final = frozenset({"copy", "help", "quit"})
"""What works here of what works everywhere in the console."""


def _works_here(action: Action) -> bool:
    return action.scope is PaneId.LOGS or action.id in ELSEWHERE


class ViewerFooter(KeyFooter):
    """The keys of the viewer."""

    def _is_wanted(self, action: Action, situation: Situation) -> bool:
        return _works_here(action) and super()._is_wanted(action, situation)


class LogViewer(HostApp, inherit_bindings=False):
    """One log on the whole screen.

    Args:
        source: The log.
        poll: Takes in what is new; returns whether there was anything.
        about: Returns what is said of the log below it.
        again_s: How soon to take in more after there was something; None for the usual pace.
    """

    TITLE = "tpudash logs"
    CSS_PATH: ClassVar[Any] = [STYLES / "console.tcss", STYLES / "dialogs.tcss"]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[Any] = []
    AUTO_FOCUS = ""

    def __init__(
        self,
        source: LogLinesSource,
        *,
        poll: Callable[[], bool],
        about: Callable[[], list[str]],
        clock: Clock,
        settings: ConsoleSettings,
        title: str,
        again_s: float | None = None,
    ) -> None:
        self.settings = settings
        self.keymap = resolve_keymap(ACTIONS, settings.keymap)
        context = ViewContext(Store(), clock, PriceBook.bundled, ViewOptions(ascii=settings.ascii))
        super().__init__(
            context, ansi_color=True if settings.no_color else None, keymap=self.keymap
        )
        self._poll = poll
        self._again_s = again_s
        self.pane = LogsPane(source=source, about=about)
        self._name = title
        self._footer = ViewerFooter(self, self.keymap)
        for spec in settings.themes:
            self.register_theme(textual_theme(spec))
        if settings.theme in self.available_themes:
            self.theme = settings.theme
        ScrollBar.renderer = SolidScrollBarRender
        for action in ACTIONS:
            if _works_here(action):
                self._bind_keys(self.keymap[action.id])

    def _bind_keys(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            name = _character_to_key(key) if len(key) == 1 else key
            self.bind(name, f"press({key!r})", show=False)

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken now."""
        return Situation(is_operator=False, subject=None, pane=PaneId.LOGS)

    def compose(self) -> ComposeResult:
        """Lay out the pane and the footer."""
        yield self.pane
        yield self._footer

    def on_mount(self) -> None:
        """Show the newest lines, and follow."""
        self.set_class(self.settings.ascii, "-ascii")
        self.pane.border_title = self._name
        self.pane.add_class("-current")
        self.pane.view.focus()
        self._footer.update(self.situation)
        self.call_after_refresh(resume_collecting)
        self.set_interval(POLL_S, self._take_in)
        self.set_interval(1.0, lambda: self.pane.tick(self.context.now()))

    def _take_in(self) -> None:
        if self._poll():
            self.pane.sync()
            if self._again_s is not None:
                self.set_timer(self._again_s, self._take_in)

    def action_press(self, key: str) -> None:
        """Take the action that a key means: the pane's own before the others."""
        wanted = canonical_key(key)
        found = [
            action for action in ACTIONS if wanted in self.keymap[action.id] and _works_here(action)
        ]
        if found:
            self._perform(min(found, key=lambda action: action.scope is None).id)

    def _perform(self, action_id: str) -> None:
        if action_id == "quit":
            self.exit()
        elif action_id == "copy":
            self.run_worker(copy_text(self, self.pane.copy_text(), "the lines"))
        elif action_id == "help":
            from tpudash.tui.screens.help import HelpScreen

            self.push_screen(HelpScreen(self, self.pane, self.keymap, self.situation))
        else:
            self.pane.perform(action_id)

    async def action_copy_text(self, text: str, what: str) -> None:
        """Copy a text to the terminal's clipboard and to a file."""
        await copy_text(self, text, what)
