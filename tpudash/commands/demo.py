"""`tpudash demo`: a local emulator, one launched run, and the operator console on them."""

from __future__ import annotations

import asyncio
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.local_console import ACCELERATOR, ZONE, open_local_console
from tpudash.commands.state import CliState, connection_options, pass_state, screen_options
from tpudash.errors import ConfigurationError, TpudashError

if TYPE_CHECKING:
    from tpudash.commands.demo_world import DemoWorld
    from tpudash.domain.operation import LaunchRequest, OperationsPort

logger = logging.getLogger(__name__)

RUN: Final = "demo"
STEPS: Final = 30_000
CHECKPOINT_EVERY: Final = 500
SEED: Final = 7


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
    return open_local_console(state, beside=_launch_first_run)


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
