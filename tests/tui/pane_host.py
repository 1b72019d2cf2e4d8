"""An app with one pane, for tests of panes; it passes changes on as the console does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from tests.tui.factories import FakeClock
from tpudash.config.themes import find_theme
from tpudash.cost.prices import PriceBook
from tpudash.tui.pane import HostApp, Pane, ViewContext, ViewOptions
from tpudash.tui.theming import textual_theme

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.pilot import Pilot
    from textual.widget import Widget

    from tpudash.store.changes import ChangeSet
    from tpudash.store.store import Store

PaneT = TypeVar("PaneT", bound=Pane)


class PaneHost(HostApp, Generic[PaneT]):
    """Shows one pane on the whole screen; nothing has the focus until a test gives it."""

    AUTO_FOCUS = ""

    def __init__(
        self,
        pane: PaneT,
        store: Store,
        *,
        clock: FakeClock | None = None,
        plain: bool = False,
        is_watch: bool = False,
        theme: str = "dark",
        ansi_color: bool | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        options = ViewOptions(is_watch=is_watch, ascii=plain)
        super().__init__(
            ViewContext(store, self.clock, PriceBook.bundled, options), ansi_color=ansi_color
        )
        self.pane = pane
        self.register_theme(textual_theme(find_theme(theme)))
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.context.store.subscribe(self._pass_on)

    def _pass_on(self, changes: ChangeSet) -> None:
        self.pane.apply(changes)

    def tick(self, seconds: float) -> None:
        """Move the clock and tell the pane."""
        self.clock.move(seconds)
        self.pane.tick(self.clock.now())


async def settle(pilot: Pilot[None]) -> None:
    """Wait until messages and the layouts that follow from them are through."""
    for _ in range(3):
        await pilot.pause()


def screen_of(widget: Widget) -> list[str]:
    """Return what a widget that draws lines shows, a text for each row of the screen."""
    return [widget.render_line(y).text for y in range(widget.size.height)]
