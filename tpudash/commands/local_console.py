"""The operator console on an emulator of its own, which ends with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.state import CliState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.commands.demo_world import DemoWorld
    from tpudash.domain.operation import OperationsPort

PROJECT: Final = "demo"
ZONE: Final = "us-central1-b"
ACCELERATOR: Final = "v2-8"
LEAVE_NOTE: Final = "The local emulator and its nodes end with it."


def open_local_console(
    state: CliState,
    *,
    beside: Callable[[OperationsPort, DemoWorld], Awaitable[None]] | None = None,
    notice: str = "",
) -> int:
    """Serve an emulator for as long as the console on it is open; return the exit code.

    `beside` is run beside the console, and `notice` is said once in it.

    Raises:
        ConfigurationError: There is no terminal, or the emulator does not start.
    """
    from tpudash.commands.demo_world import METRICS_PERIOD_S, demo_world
    from tpudash.commands.lazy_operations import LazyOperations
    from tpudash.commands.operator_ports import operator_ports
    from tpudash.commands.screen import ScreenParts, begin_screen, run_screen

    state.flags |= {"project": PROJECT, "endpoint": "127.0.0.1:1"}
    begin_screen(state)
    click.echo("starting a local emulator ...", err=True)
    with demo_world(state.paths.demo_dir) as world:
        parts = ScreenParts(_inside(state, world, METRICS_PERIOD_S), is_operator=True)
        operations = LazyOperations(parts)
        ports = operator_ports(parts, operations)
        if beside is not None:
            parts.beside.append(lambda: beside(operations, world))
        code = run_screen(
            parts, operations=operations, ports=ports, leave_note=LEAVE_NOTE, notice=notice
        )
        click.echo("ending the emulator and its nodes ...", err=True)
        return code


def _inside(state: CliState, world: DemoWorld, metrics_period_s: float) -> CliState:
    """Return the state of this console: its own endpoint, its own journal, the user's looks."""
    from tpudash.config.settings import LoadedSettings

    settings = replace(
        state.settings,
        project=PROJECT,
        endpoint=world.endpoint,
        bucket=world.bucket,
        zones=(ZONE,),
        accelerator_type=ACCELERATOR,
        shell_command=None,
        control_dir=None,
        intervals=replace(state.settings.intervals, metrics=metrics_period_s),
    )
    inner = CliState(flags=state.flags, debug=state.debug, config=state.config)
    # Cached properties may be set, which is how a state that was loaded otherwise is made.
    inner.__dict__["loaded"] = LoadedSettings(settings, state.loaded.origins, state.loaded.file)
    inner.__dict__["paths"] = replace(state.paths, state_dir=world.folder / "state")
    return inner
