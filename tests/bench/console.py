"""A console with a store filled by hand, and a background that does what a benchmark asks for.

Usage: console.py NODES still|frozen|cells|steady|one-cell
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tpudash.tui.terminal import leave, prepare_environment, run_console

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.store.store import Store

CHANGED_ROWS = 20
CHANGES_A_SECOND = 10
LINES_A_SECOND = 10


class FrozenClock:
    """Time of day that stands still, so that nothing changes at all; waiting works as usual."""

    def now(self) -> datetime:
        return datetime(2026, 12, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        import time

        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def make_store(nodes: int) -> Store:
    """Return a store with as many runs as nodes, each on its node."""
    from tests.tui.factories import (
        connect,
        list_nodes,
        make_node,
        make_run,
        read_runs,
        report_source,
    )
    from tpudash.store.store import Store

    store = Store()
    connect(store)
    names = [f"run-{at:04d}" for at in range(nodes)]
    list_nodes(store, *(make_node(f"{name}-1", run=name) for name in names))
    read_runs(store, *(make_run(name) for name in names))
    # Data that grew old in the course of a benchmark would be a change.
    report_source(store, "nodes", last_success=datetime.now(UTC), interval_s=3600)
    return store


def background_of(kind: str, store: Store) -> Callable[[], Awaitable[None]]:
    """Return what feeds the store."""
    works = {"cells": change_cells, "steady": work_steadily, "one-cell": change_one_cell}

    async def run() -> None:
        if kind in works:
            await works[kind](store)
        await asyncio.Event().wait()

    return run


async def change_cells(store: Store) -> None:
    """Change 200 cells ten times a second: step, rate, loss and what follows from them."""
    from tests.tui.factories import read_runs

    step = 1000
    while True:
        step += 7
        runs = list(store.snapshot.runs.values())
        changed = [
            replace(
                run,
                step=step + at,
                checkpoint_step=step - at,
                examples_per_second=1000.0 + step + at,
                loss=1.0 / (step + at),
                last_heard=datetime.now(UTC),
            )
            for at, run in enumerate(runs[:CHANGED_ROWS])
        ]
        read_runs(store, *changed, *runs[CHANGED_ROWS:])
        await asyncio.sleep(1 / CHANGES_A_SECOND)


async def work_steadily(store: Store) -> None:
    """Do what a normal day does: 10 log lines a second, all steps every 10 s, nodes listed."""
    from tests.tui.factories import add_logs, make_entry, read_runs, report_source

    tick = 0
    while True:
        tick += 1
        text = f"step {tick:>5}/9000 loss 0.{9999 - tick % 9999:04d} 1,834 examples/s"
        entry = make_entry(0, text, node_id="run-0000-1", run="run-0000")
        moment = datetime.now(UTC)
        add_logs(store, replace(entry, timestamp=moment, insert_id=f"line-{tick}"))
        if tick % (10 * LINES_A_SECOND) == 0:
            runs = store.snapshot.runs.values()
            read_runs(store, *(replace(run, step=(run.step or 0) + 9) for run in runs))
            report_source(store, "nodes", last_success=datetime.now(UTC))
        await asyncio.sleep(1 / LINES_A_SECOND)


async def change_one_cell(store: Store) -> None:
    """Change the step of the first run, and nothing else, once a second."""
    from tests.tui.factories import read_runs

    step = 450
    while True:
        await asyncio.sleep(1)
        step += 1
        first, *others = store.snapshot.runs.values()
        read_runs(store, replace(first, step=step, checkpoint_step=step - 50), *others)


def main(nodes: int, kind: str) -> None:
    """Run the console."""
    prepare_environment()
    from tests.tui.factories import FakeEmulator, FakeOperations
    from tpudash.clock import SystemClock
    from tpudash.config.themes import find_theme
    from tpudash.cost.prices import PriceBook
    from tpudash.tui.acts import OperatorPorts
    from tpudash.tui.app import TpudashApp, with_defaults
    from tpudash.tui.settings import ConsoleSettings

    store = make_store(nodes)
    settings = with_defaults(ConsoleSettings(theme="dark", themes=(find_theme("dark"),)))
    app = TpudashApp(
        store,
        clock=FrozenClock() if kind in {"frozen", "one-cell"} else SystemClock(),
        prices=PriceBook.bundled(),
        background=background_of(kind, store),
        operations=FakeOperations(store),
        ports=OperatorPorts(emulator=FakeEmulator()),
        settings=settings,
    )
    leave(run_console(app, mouse=False))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
