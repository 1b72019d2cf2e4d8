"""A console with a store filled by hand, to be run on a real terminal by `test_pty`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from tpudash.tui.terminal import leave, prepare_environment, run_console

if TYPE_CHECKING:
    from tpudash.domain.node import Node
    from tpudash.domain.shell import ShellCommand


async def stuck() -> None:
    """Block a thread and refuse to be cancelled, as a black-holed connection might."""
    forever = threading.Event()
    blocked = asyncio.get_running_loop().run_in_executor(None, forever.wait)
    while True:
        try:
            await asyncio.shield(blocked)
        except asyncio.CancelledError:
            continue


async def deaf() -> None:
    """Block the event loop itself once a file asks for it, as a write to a dead terminal does."""
    folder = Path(os.environ["DEAF_IN"])
    while not (folder / "asked").exists():  # noqa: ASYNC110  another process asks
        await asyncio.sleep(0.02)
    (folder / "deaf").touch()
    threading.Event().wait()


class LocalShell:
    """A shell that says where it is."""

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        from tpudash.domain.shell import ShellCommand

        return ShellCommand(
            ("/bin/sh",), environment={"PS1": f"{node.node_id}/{worker}> ", "ENV": ""}
        )


def main(nodes: int) -> None:
    """Run the console with so many nodes."""
    prepare_environment()

    from tests.tui.factories import (
        FakeEmulator,
        FakeOperations,
        list_nodes,
        make_node,
        make_world,
    )
    from tpudash.clock import SystemClock
    from tpudash.config.themes import find_theme
    from tpudash.cost.prices import PriceBook
    from tpudash.tui.acts import OperatorPorts
    from tpudash.tui.app import TpudashApp, with_defaults
    from tpudash.tui.settings import ConsoleSettings

    store = make_world()
    more = (make_node(f"more-{at:04d}", run=None) for at in range(nodes))
    list_nodes(store, *store.snapshot.nodes.values(), *more)
    settings = with_defaults(ConsoleSettings(theme="dark", themes=(find_theme("dark"),)))
    app = TpudashApp(
        store,
        clock=SystemClock(),
        prices=PriceBook.bundled(),
        background=deaf if "DEAF_IN" in os.environ else stuck,
        operations=FakeOperations(store),
        ports=OperatorPorts(emulator=FakeEmulator(), shell=LocalShell()),
        settings=settings,
    )
    leave(run_console(app, mouse=settings.mouse))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
