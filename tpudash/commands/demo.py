"""`tpudash demo`: a local emulator, one launched run, and the operator console on them."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.state import CliState, connection_options, pass_state, screen_options
from tpudash.errors import ConfigurationError, TpudashError

if TYPE_CHECKING:
    from tpudash.commands.demo_world import DemoWorld
    from tpudash.domain.operation import LaunchRequest, OperationsPort

logger = logging.getLogger(__name__)

PROJECT: Final = "demo"
ZONE: Final = "us-central1-b"
ACCELERATOR: Final = "v2-8"
RUN: Final = "demo"
STEPS: Final = 3_000
CHECKPOINT_EVERY: Final = 100
SEED: Final = 7
LEAVE_NOTE: Final = "The demo's emulator and its nodes end with it."


@click.command()
@connection_options
@screen_options
@pass_state
def demo(state: CliState) -> int:
    """Try everything without a Google account.

    Starts an emulator of Google Cloud on this machine, launches one real training run on a spot
    v2-8 of it, and opens the console. Leaving ends all of it. Nothing leaves the machine and
    nothing costs money.
    """
    _check_trainer()
    from tpudash.commands.demo_world import METRICS_PERIOD_S, demo_world
    from tpudash.commands.lazy_operations import LazyOperations
    from tpudash.commands.operator_ports import operator_ports
    from tpudash.commands.screen import ScreenParts, begin_screen, run_screen

    state.flags |= {"project": PROJECT, "endpoint": "127.0.0.1:1"}
    begin_screen(state)
    click.echo("starting a local emulator ...", err=True)
    with demo_world(state.paths.demo_dir) as world:
        inner = _inside(state, world, METRICS_PERIOD_S)
        parts = ScreenParts(inner, is_operator=True)
        operations = LazyOperations(parts)
        ports = operator_ports(parts, operations)
        parts.beside.append(lambda: _launch_first_run(operations, world))
        code = run_screen(parts, operations=operations, ports=ports, leave_note=LEAVE_NOTE)
        click.echo("ending the emulator and its nodes ...", err=True)
        return code


def _check_trainer() -> None:
    """See that a run could train, before anything is started.

    Raises:
        ConfigurationError: TensorFlow is not installed.
    """
    if find_spec("tensorflow") is None:
        raise ConfigurationError(
            "the demo trains for real, and TensorFlow is not installed",
            hint="pip install 'tpudash[trainer]', or try: tpudash emulator serve",
        )


def _inside(state: CliState, world: DemoWorld, metrics_period_s: float) -> CliState:
    """Return the state of the demo: its own endpoint, its own journal, the user's looks."""
    from dataclasses import replace

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


async def _launch_first_run(operations: OperationsPort, world: DemoWorld) -> None:
    """Launch the demo's run as a user would, through a plan."""
    try:
        plan = await operations.plan_launch(first_run(world.bucket))
        operations.start(plan)
    except TpudashError as error:
        logger.warning("the demo's run could not be launched: %s", error)
    await asyncio.Event().wait()


def first_run(bucket: str) -> LaunchRequest:
    """Return the run that the demo begins with."""
    from tpudash.domain.node import Scheduling
    from tpudash.domain.operation import LaunchRequest

    return LaunchRequest(
        run=RUN,
        accelerator_type=ACCELERATOR,
        zones=(ZONE,),
        bucket=bucket,
        scheduling=Scheduling.SPOT,
        steps=STEPS,
        checkpoint_every_steps=CHECKPOINT_EVERY,
        seed=SEED,
    )
