"""The app: wires the store, the panes, the registry and the acts together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on
from textual.keys import _character_to_key
from textual.scrollbar import ScrollBar

from tpudash.config.keymap import canonical_key, resolve_keymap
from tpudash.tui.action import Situation
from tpudash.tui.actions import ACTIONS, find_action
from tpudash.tui.acts import Acts, OperatorPorts, control_words, holder_words
from tpudash.tui.alarms import AlarmNotices
from tpudash.tui.background import Background
from tpudash.tui.handlers import Handlers, copy_text
from tpudash.tui.pane import HostApp, ViewContext, ViewOptions
from tpudash.tui.panes import create_panes
from tpudash.tui.screens.main import MainScreen
from tpudash.tui.settings import ConsoleSettings
from tpudash.tui.stage import Stage
from tpudash.tui.terminal import find_traits, resume_collecting
from tpudash.tui.theming import textual_theme
from tpudash.tui.type_ahead import TypeAhead
from tpudash.tui.widgets.nodes_pane import NodesPane
from tpudash.tui.widgets.solid_scrollbar import SolidScrollBarRender
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.command import Provider
    from textual.screen import Screen
    from textual.timer import Timer

    from tpudash.clock import Clock
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.operation import OperationsPort
    from tpudash.store.store import Store
    from tpudash.tui.action import Action, Offer

SELECTION_SETTLES_S: Final = 0.08
MOST_RECENT: Final = 5


def _action_provider() -> type[Provider]:
    """Return the palette's provider; imported only when the palette opens."""
    from tpudash.tui.palette import ActionProvider

    return ActionProvider


class TpudashApp(HostApp, inherit_bindings=False):
    """The console, and without operations the watch mode.

    Args:
        prices: The prices, or a function that returns them as they are known now.
        background: Feeds the store until it is cancelled; started after the first frame.
        operations: The operations room, or None in watch mode.
        ports: What else an operator's console may ask.
    """

    TITLE = "tpudash"
    CSS_PATH: ClassVar[Any] = ["styles/console.tcss", "styles/dialogs.tcss"]
    COMMANDS: ClassVar[Any] = {_action_provider}
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[Any] = []

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        prices: PriceBook | Callable[[], PriceBook],
        background: Callable[[], Awaitable[None]],
        operations: OperationsPort | None = None,
        ports: OperatorPorts | None = None,
        settings: ConsoleSettings | None = None,
    ) -> None:
        self.settings = settings or ConsoleSettings()
        self.keymap = resolve_keymap(ACTIONS, self.settings.keymap)
        options = ViewOptions(is_watch=operations is None, ascii=self.settings.ascii)
        source = prices if callable(prices) else lambda: prices
        super().__init__(
            ViewContext(store, clock, source, options),
            ansi_color=True if self.settings.no_color else None,
            keymap=self.keymap,
        )
        self._acts: Acts | None = None
        if operations is not None:
            self._acts = Acts(self, operations, ports or OperatorPorts(), self.settings.launch)
        self._type_ahead = TypeAhead(self)
        self._background = Background(background, self._background_failed)
        self._selection_timer: Timer | None = None
        self.recent: tuple[str, ...] = ()
        self.main = MainScreen(
            self, create_panes(self.settings.panes), self.keymap, project=self.settings.project
        )
        notices = AlarmNotices(self)
        self.stage = Stage(
            self, self.main, self._update_footer, self._control_changed, notices.look
        )
        self._had_control = True
        self._handlers = Handlers(self, self._acts).table()
        ScrollBar.renderer = SolidScrollBarRender
        self._themes = self.settings.themes
        self._has_all_themes = False
        self._bind_keys()
        self._register_themes()

    async def on_event(self, event: events.Event) -> None:
        """Hold keys that come before the dialog that they are meant for."""
        if isinstance(event, events.Key) and self._type_ahead.holds(event):
            return
        await super().on_event(event)

    def _bind_keys(self) -> None:
        keys = {key for keys in self.keymap.values() for key in keys}
        for key in sorted(keys):
            name = _character_to_key(key) if len(key) == 1 else key
            self.bind(name, f"press({key!r})", show=False)

    def _register_themes(self) -> None:
        for spec in self._themes:
            self.register_theme(textual_theme(spec))
        names = self.available_themes
        if self.settings.theme in names:
            self._take_theme(self.settings.theme)

    def _take_theme(self, name: str) -> None:
        spec = next((one for one in self._themes if one.name == name), None)
        looks = {} if spec is None else spec.states
        self.theme_glyphs = {kind: (look.glyph, look.ascii) for kind, look in looks.items()}
        self.theme = name

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen."""
        return self.main

    def on_mount(self) -> None:
        """Listen to the store; the background begins only when the first frame is out."""
        self.set_class(self.settings.ascii, "-ascii")
        self.stage.open()
        self.set_interval(1.0, self._tick)
        if self.settings.rotate_s > 0:
            self.set_interval(self.settings.rotate_s, self.main.rotate)
        self.call_after_refresh(self._start_background)

    def _tick(self) -> None:
        self.stage.tick()

    def _start_background(self) -> None:
        resume_collecting()
        self._background.start()
        for notice in self.settings.notices:
            self.notify(safe_text(notice, 400), severity="warning", markup=False, timeout=10)

    def _background_failed(self, error: Exception) -> None:
        self.main.status.complain("NO MORE DATA")
        words = safe_text(f"{type(error).__name__}: {error}", 300)
        self.notify(
            f"What feeds this screen has ended: {words}. Start tpudash again.",
            severity="error",
            markup=False,
            timeout=60,
        )

    async def on_unmount(self) -> None:
        """Stop listening and stop the background, but wait for it only for a moment."""
        self.stage.close()
        await self._background.stop()

    def _update_footer(self) -> None:
        self.main.footer.update(self.situation)

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken now."""
        snapshot = self.context.store.snapshot
        offers: frozenset[Offer] = frozenset()
        if self._acts is not None:
            info = snapshot.connection
            offers = self._acts.ports.offers(is_emulator=info is not None and info.is_emulator)
        return Situation(
            is_operator=self._acts is not None,
            subject=self.context.subject,
            pane=self.main.current.pane_id,
            offers=offers,
            control="" if self._acts is None else control_words(snapshot.control, self.hints),
        )

    def _control_changed(self) -> None:
        """Say who took control away, once."""
        control = self.context.store.snapshot.control
        has_control = control is None or control.is_ours
        if self._had_control and control is not None and not has_control:
            does = self.hints.fill("This console only shows; {take-control} takes control.")
            words = f"{holder_words(control)}. {does}"
            self.notify(words, severity="warning", markup=False, timeout=10)
        self._had_control = has_control
        self._update_footer()

    def refresh_bindings(self) -> None:
        """Bring the footer up to date with the focus and the selection."""
        super().refresh_bindings()
        if self.main.is_mounted:
            self._update_footer()

    def action_press(self, key: str) -> None:
        """Find the action that a key means here: the focused pane's own before the others."""
        situation, wanted = self.situation, canonical_key(key)
        found = [
            action
            for action in ACTIONS
            if wanted in self.keymap[action.id] and action.takes_key(situation)
        ]
        if found:
            self.perform(min(found, key=lambda action: action.scope is None).id)

    def perform(self, action_id: str) -> None:
        """Take an action, or say why it can't be taken."""
        action, situation = find_action(action_id), self.situation
        if action is None or not action.exists(situation):
            return
        reason = action.hindrance(situation, self.hints)
        if reason:
            self.notify(reason, severity="warning", markup=False)
            return
        self.recent = (action_id, *(one for one in self.recent if one != action_id))[:MOST_RECENT]
        self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        if action.scope is None:
            self._handlers[action.id]()
            return
        pane = self.main.panes.get(action.scope)
        if pane is not None:
            if self.main.current is not pane:
                self.main.focus_pane(action.scope)
            pane.perform(action.id)

    def next_theme(self) -> None:
        """Take on the next theme of those that can be chosen."""
        if self.settings.more_themes is not None and not self._has_all_themes:
            self._has_all_themes = True
            self._themes = self.settings.more_themes()
            for spec in self._themes:
                self.register_theme(textual_theme(spec))
        names = [spec.name for spec in self._themes] or sorted(self.available_themes)
        at = names.index(self.theme) if self.theme in names else -1
        self._take_theme(names[(at + 1) % len(names)])
        self.call_after_refresh(self.stage.tick)
        self.notify(f"Theme: {self.theme}", markup=False, timeout=2)

    async def action_copy_text(self, text: str, what: str) -> None:
        """Copy a text to the terminal's clipboard and to a file."""
        await copy_text(self, text, what)

    @on(NodesPane.SubjectChanged)
    def _subject_changed(self, event: NodesPane.SubjectChanged) -> None:
        """Follow the cursor once it rests; panes may have much to redraw."""
        event.stop()
        self.context.subject = event.subject
        self.refresh_bindings()
        if self._selection_timer is not None:
            self._selection_timer.stop()
        self._selection_timer = self.set_timer(SELECTION_SETTLES_S, self._tell_selection)

    def _tell_selection(self) -> None:
        self.main.select(self.context.subject)

    @on(NodesPane.DetailsWanted)
    def _details_wanted(self, event: NodesPane.DetailsWanted) -> None:
        from tpudash.tui.screens.details import DetailsScreen

        event.stop()
        if not any(isinstance(one, DetailsScreen) for one in self.screen_stack):
            self.push_screen(DetailsScreen(self, event.subject))

    @on(NodesPane.ShellWanted)
    def _shell_wanted(self, event: NodesPane.ShellWanted) -> None:
        event.stop()
        node = self.context.store.snapshot.nodes.get(event.subject.name)
        if self._acts is not None and node is not None:
            self._acts.shell(node)


def with_defaults(settings: ConsoleSettings) -> ConsoleSettings:
    """Return settings with what the terminal's environment says laid below them."""
    traits = find_traits()
    return replace(
        settings,
        ascii=settings.ascii or traits.ascii,
        mouse=settings.mouse and traits.mouse,
        no_color=settings.no_color or traits.no_color,
    )
