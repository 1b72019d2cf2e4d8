"""The console under a pilot, with everything around it replaced."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import (
    FakeClock,
    FakeControl,
    FakeEmulator,
    FakeOperations,
    FakeShell,
    make_world,
    no_background,
)
from tpudash.cost.prices import PriceBook
from tpudash.tui.acts import OperatorPorts
from tpudash.tui.app import TpudashApp
from tpudash.tui.settings import ConsoleSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from textual.pilot import Pilot

    from tpudash.store.store import Store
    from tpudash.tui.widgets.node_table import NodeTable
    from tpudash.tui.widgets.nodes_pane import NodesPane

LONGEST_WAIT = 200
"""Rounds of the pilot until a condition counts as never met."""


@dataclass
class Console:
    """A running console with its fakes."""

    app: TpudashApp
    pilot: Pilot[None]
    store: Store
    clock: FakeClock
    operations: FakeOperations
    emulator: FakeEmulator
    shell: FakeShell
    control: FakeControl

    @property
    def screen_text(self) -> str:
        """What is painted now, as a person would read it."""
        return "\n".join(
            "".join(segment.text for segment in strip)
            for strip in self.app.screen._compositor.render_strips()
        )

    @property
    def nodes(self) -> NodesPane:
        from tpudash.tui.widgets.nodes_pane import NodesPane

        return self.app.main.query_one(NodesPane)

    @property
    def table(self) -> NodeTable:
        return self.nodes.table

    @property
    def notices(self) -> list[str]:
        """The messages that were shown, oldest first."""
        return [notification.message for notification in self.app._notifications]

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition, not for a time."""
        for _ in range(LONGEST_WAIT):
            if condition():
                return
            await self.pilot.pause(0.02)
        pytest.fail(f"never came true: {what or condition}\n{self.screen_text}")


@pytest.fixture
def open_console() -> Callable[..., AbstractAsyncContextManager[Console]]:
    """Return a context manager that runs a console."""
    return run_console_under_test


@asynccontextmanager
async def run_console_under_test(
    store: Store | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    is_watch: bool = False,
    created: Callable[[TpudashApp], None] = lambda _: None,
    **more: Any,
) -> AsyncIterator[Console]:
    store = make_world() if store is None else store
    clock = FakeClock()
    operations, emulator = FakeOperations(store), FakeEmulator()
    shell, control = FakeShell(), FakeControl()
    ports = OperatorPorts(emulator=emulator, shell=shell, control=control)
    options: dict[str, Any] = {
        "clock": clock,
        "prices": PriceBook.bundled(),
        "background": no_background,
        "operations": None if is_watch else operations,
        "ports": None if is_watch else ports,
        "settings": ConsoleSettings(project="demo"),
        **more,
    }
    app = TpudashApp(store, **options)
    created(app)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Console(app, pilot, store, clock, operations, emulator, shell, control)
