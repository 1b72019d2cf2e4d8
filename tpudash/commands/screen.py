"""What the console, the watch mode and the demo share: a store, its pollers, and the app on them.

Nothing here imports operations, because watch mode is this without them. Google's clients are
imported only when the pollers connect, after the first frame.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tpudash.clock import SystemClock
from tpudash.commands.session import prepare
from tpudash.cost.prices import PriceBook
from tpudash.pollers.link import Link
from tpudash.store.masked import MaskedStore
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.commands.state import CliState
    from tpudash.config.settings import Settings
    from tpudash.config.themes import ThemeSpec
    from tpudash.domain.operation import OperationsPort
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.poller_set import PollerSet
    from tpudash.tui.acts import OperatorPorts
    from tpudash.tui.settings import ConsoleSettings


class LazyConnector:
    """A connector whose clients are imported off the event loop, when they are first needed."""

    def __init__(self, settings: Settings, *, read_only: bool) -> None:
        self._settings = settings
        self._read_only = read_only
        self._connection: Any = None

    async def cloud(self) -> Cloud:
        """Connect and return all gateways."""
        from tpudash.commands.session import make_connection

        self._connection = await asyncio.to_thread(
            make_connection,
            self._settings,
            read_only=self._read_only,
            is_watch=self._read_only,
        )
        cloud: Cloud = await self._connection.cloud()
        return cloud

    async def close(self) -> None:
        """Close every channel."""
        if self._connection is not None:
            await self._connection.close()


@dataclass
class ScreenParts:
    """Everything behind one screen.

    Attributes:
        is_operator: Whether the screen can change the cloud; without it, what only reads can
            leave the process.
        beside: What runs beside the pollers, such as the demo's first launch.
    """

    state: CliState
    is_operator: bool = False
    clock: SystemClock = field(default_factory=SystemClock)
    prices: PriceBook = field(default_factory=PriceBook.bundled)
    beside: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    @cached_property
    def store(self) -> Store:
        """What is known; on a screen that everybody sees, without addresses and accounts."""
        return Store() if self.is_operator else MaskedStore()

    @cached_property
    def link(self) -> Link:
        """The connection that everything on this screen shares."""
        settings = self.state.settings

        def connect() -> LazyConnector:
            return LazyConnector(settings, read_only=not self.is_operator)

        return Link(self.store, connect, settings.endpoint, self.clock)

    async def feed(self) -> None:
        """Keep the store up to date until cancelled; the app's background."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pollers().run(), name="pollers")
            for work in self.beside:
                tasks.create_task(_run(work), name="beside the pollers")

    def pollers(self) -> PollerSet:
        """Return the pollers of every source."""
        from tpudash.commands.sources import make_pollers

        return make_pollers(self)

    def take_prices(self, book: PriceBook) -> None:
        """Use newer prices from now on."""
        self.prices = book


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def run_screen(
    parts: ScreenParts,
    *,
    operations: OperationsPort | None = None,
    ports: OperatorPorts | None = None,
    leave_note: str = "",
    notice: str = "",
) -> int:
    """Show the screen until the user leaves, and return the exit code.

    `leave_note` is said to whoever leaves while nodes are billed, instead of the usual note;
    `notice` is said once after the start.
    """
    from tpudash.tui.terminal import find_traits, prepare_environment, run_console

    prepare_environment()
    from tpudash.tui.app import TpudashApp

    settings = parts.state.settings
    parts.store.logs.spool_in(parts.state.paths.cache_dir)
    traits = find_traits()
    is_watch = operations is None
    console = console_settings(parts.state, is_watch=is_watch)
    if leave_note:
        console = replace(console, leave_note=leave_note)
    if notice:
        console = replace(console, notices=(notice, *console.notices))
    app = TpudashApp(
        parts.store,
        clock=parts.clock,
        prices=lambda: parts.prices,
        background=parts.feed,
        operations=operations,
        ports=ports,
        settings=console,
    )
    mouse = traits.mouse if settings.mouse is None else settings.mouse
    return run_console(app, mouse=mouse and not is_watch)


def console_settings(
    state: CliState, *, is_watch: bool, is_replay: bool = False
) -> ConsoleSettings:
    """Return what the app is told: settings, with the terminal's traits where none are set."""
    from tpudash.config.themes import find_theme, list_themes, theme_or_default
    from tpudash.tui.pane import PaneId
    from tpudash.tui.settings import ConsoleSettings, LaunchDefaults
    from tpudash.tui.terminal import find_traits

    settings = state.settings
    traits = find_traits()
    folder = state.paths.themes_dir
    theme, problem = theme_or_default(settings.theme, folder)

    def all_themes() -> tuple[ThemeSpec, ...]:
        names = [info.name for info in list_themes(folder) if not info.problem]
        return tuple(find_theme(name, folder) for name in names)

    return ConsoleSettings(
        theme=theme.name,
        themes=(theme,),
        more_themes=all_themes,
        ascii=traits.ascii if settings.ascii is None else settings.ascii,
        mouse=traits.mouse if settings.mouse is None else settings.mouse,
        panes=panes_of(settings.panes) or tuple(PaneId),
        keymap=dict(settings.keys),
        project=settings.first_project or "",
        copy_file=None if is_watch else state.paths.state_dir / "copied.txt",
        launch=LaunchDefaults(
            bucket=settings.bucket or "",
            zones=settings.zones,
            accelerator_type=settings.accelerator_type or "",
        ),
        idle_for=settings.alarm_limits.idle_for,
        no_color=traits.no_color,
        rotate_s=settings.rotate_s if is_watch else 0.0,
        notices=_notices(settings, problem, is_watch=is_watch and not is_replay),
    )


def _notices(settings: Settings, problem: str, *, is_watch: bool) -> tuple[str, ...]:
    """Return what is said once after the start."""
    notices = [problem] if problem else []
    is_google = settings.endpoint is None
    if is_watch and is_google and not (settings.watch_impersonate or settings.impersonate):
        notices.append(
            "This screen is signed in with your own rights; it changes nothing. To watch with a"
            " viewer's rights alone, name a service account: watch_impersonate in the settings."
        )
    return tuple(notices)


def panes_of(names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return panes by name.

    Raises:
        ConfigurationError: There is no such pane.
    """
    import difflib

    from tpudash.errors import ConfigurationError
    from tpudash.tui.pane import PaneId

    known = [str(pane) for pane in PaneId]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise ConfigurationError(
                f"there is no pane {name!r}",
                hint=f"the panes are {', '.join(known)}; did you mean {near[0]!r}?",
            )
    return tuple(PaneId(name) for name in dict.fromkeys(names))


def begin_screen(state: CliState) -> None:
    """Check what a screen needs before it takes the terminal.

    Raises:
        ConfigurationError: Settings are wrong, the state folder can't be written to, or there is
            no terminal.
    """
    import sys

    from tpudash.config.paths import ensure_writable
    from tpudash.errors import ConfigurationError

    ensure_writable(state.paths.state_dir, "state directory")
    prepare(state)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError(
            "the screen needs a terminal",
            hint="without one, see: tpudash nodes, runs, cost, logs; each has --json",
        )
