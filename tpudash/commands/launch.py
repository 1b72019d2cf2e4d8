"""`tpudash launch`: a training run on a new node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tpudash.commands.acting import (
    ActFlags,
    SplitCommand,
    acting_options,
    check_can_confirm,
    words_after_dashes,
)
from tpudash.commands.launch_placement import placement_of, placement_options
from tpudash.commands.numbers import AboveZero
from tpudash.commands.state import CliState, pass_state
from tpudash.domain.node import Scheduling
from tpudash.domain.recipes import DEFAULT_RECIPE, RECIPES
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.config.settings import Settings
    from tpudash.domain.operation import LaunchRequest

TRAINER_OPTIONS: Final = {
    "batch_size": "--batch_size",
    "epochs": "--num_epochs",
    "precision": "--precision",
    "learning_rate": "--learning_rate",
    "train_files": "--train_files",
    "eval_files": "--eval_files",
    "port": "--port",
}
"""Options that are passed on to the trainer, under the name that it knows them by."""
EXAMPLE: Final = """\b
Example:
  tpudash launch demo --accelerator v2-8 --zone us-central1-b --spot
    --bucket gs://my-bucket --steps 600 --checkpoint-every 100 --seed 7
"""


@click.command(cls=SplitCommand, epilog=EXAMPLE)
@click.argument("name")
@click.option("--accelerator", metavar="TYPE", help="Accelerator type, such as v2-8.")
@click.option(
    "--zone", "zones", multiple=True, metavar="ZONE", help="Candidate zone; repeat for more."
)
@click.option("--spot", "scheduling", flag_value="spot", help="Spot capacity (the default).")
@click.option("--on-demand", "scheduling", flag_value="on-demand", help="On-demand capacity.")
@click.option("--preemptible", "scheduling", flag_value="preemptible", help="At most 24 hours.")
@click.option("--reserved", "scheduling", flag_value="reserved", help="Out of a reservation.")
@click.option("--runtime", metavar="VERSION", help="Runtime version; one that fits if not given.")
@click.option("--bucket", metavar="URL", help="gs://BUCKET, or a folder with the emulator.")
@click.option(
    "--recipe",
    type=click.Choice(tuple(RECIPES)),
    default=DEFAULT_RECIPE,
    show_default=True,
    help="Which trainer runs.",
)
@click.option(
    "--serve",
    metavar="MODEL",
    help="Serve instead of training: a run of the bucket by its name, or a gs:// folder.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Port that --serve listens on (8501).")
@click.option("--steps", type=click.IntRange(min=1), help="Train up to this step.")
@click.option(
    "--checkpoint-every", type=click.IntRange(min=1), metavar="N", help="Save each N steps."
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of weights and data order.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Global batch size.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the data, if no --steps.")
@click.option(
    "--precision", type=click.Choice(["auto", "float32", "bfloat16"]), help="Compute type."
)
@click.option("--learning-rate", type=AboveZero())
@click.option("--train-files", multiple=True, metavar="PATTERN", help="TFRecord files to train on.")
@click.option("--eval-files", multiple=True, metavar="PATTERN", help="TFRecord files to evaluate.")
@click.option(
    "--validate-first", is_flag=True, help="The trainer tests itself; if that fails, no training."
)
@click.option("--delete-node-when-done", is_flag=True, help="The node removes itself at the end.")
@click.option(
    "--max-cost",
    type=AboveZero(),
    metavar="USD",
    help="The most that the run may cost.",
)
@placement_options
@acting_options
@pass_state
@click.pass_context
def launch(ctx: click.Context, state: CliState, /, **options: Any) -> int:
    """Launch the training run NAME on a new node; words after -- go to the trainer as they are.

    Zones are tried in the order given when one has no capacity. With --queued the node is asked
    for by a queued resource, which waits for capacity. With --serve the node answers predictions
    instead of training; words after -- go to the server (python -m trainer.serve --help).
    Launching again after a crash takes up
    what was begun.
    """
    from tpudash.commands.operating import operate

    flags = ActFlags(*(options[name] for name in ("dry_run", "yes", "wait", "as_json")))
    check_can_confirm(flags)
    request = _request(options, state.settings, words_after_dashes(ctx))
    return operate(state, flags, lambda room: room.plan_launch(request), [request.run])


def _request(
    options: Mapping[str, Any], settings: Settings, for_trainer: tuple[str, ...]
) -> LaunchRequest:
    from tpudash.domain.operation import LaunchRequest

    _check_kind(options)
    kind = options["accelerator"] or settings.accelerator_type
    return LaunchRequest(
        run=options["name"],
        accelerator_type=_needed(kind, "--accelerator", "v2-8"),
        zones=_zones(options["zones"], settings),
        bucket=_needed(options["bucket"] or settings.bucket, "--bucket", "gs://my-bucket"),
        scheduling=Scheduling(options["scheduling"] or "spot"),
        runtime_version=options["runtime"],
        steps=options["steps"],
        checkpoint_every_steps=options["checkpoint_every"],
        seed=options["seed"],
        trainer_arguments=(*trainer_arguments(options), *for_trainer),
        serve=options["serve"],
        delete_node_when_done=options["delete_node_when_done"],
        validate_first=options["validate_first"],
        max_cost_usd=options["max_cost"],
        placement=placement_of(options),
        recipe=options["recipe"],
    )


def _check_kind(options: Mapping[str, Any]) -> None:
    given = [name for name in TRAINER_OPTIONS if options.get(name)]
    wrong = [name for name in given if (name == "port") is (options["serve"] is None)]
    if wrong:
        flag = f"--{wrong[0].replace('_', '-')}"
        where = "with --serve" if wrong[0] == "port" else "without --serve"
        raise UsageError(f"{flag} has a meaning only {where}")


def trainer_arguments(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the trainer's command line for the options that it takes from ours."""
    words: list[str] = []
    for name, flag in TRAINER_OPTIONS.items():
        value = options.get(name)
        if isinstance(value, tuple):
            words += [flag, *(str(one) for one in value)] if value else []
        elif value is not None:
            words += [flag, str(value)]
    return tuple(words)


def _zones(zones: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(zones or settings.zones))
    if not found:
        raise UsageError(
            "launch needs a zone", hint="give --zone, such as --zone us-central1-b, or set `zones`"
        )
    return found


def _needed(value: str | None, option: str, example: str) -> str:
    if value:
        return value
    raise UsageError(f"launch needs {option}", hint=f"give {option}, such as {option} {example}")
