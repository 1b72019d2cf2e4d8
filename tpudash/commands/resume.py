"""`tpudash resume`: a run goes on, on a new node, from its last good checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tpudash.commands.acting import ActFlags, acting_options, check_can_confirm
from tpudash.commands.numbers import AboveZero
from tpudash.commands.state import CliState, pass_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.domain.operation import ResumeChanges


@click.command()
@click.argument("run")
@click.option(
    "--zone", "zones", multiple=True, metavar="ZONE", help="Candidate zones from now on, in order."
)
@click.option("--queued/--no-queued", default=None, help="Ask by a queued resource, or not.")
@click.option("--valid-until-duration", metavar="TIME", help="How long it may queue, such as 6h.")
@click.option(
    "--max-cost",
    type=AboveZero(),
    metavar="USD",
    help="The most that the whole run may cost from now on.",
)
@acting_options
@pass_state
def resume(state: CliState, /, run: str, zones: tuple[str, ...], **options: Any) -> int:
    """Continue RUN on a new node from its last good checkpoint.

    The dead node is deleted first and awaited until it is gone. A run whose node is READY and
    training is refused, because two trainers of one run would spoil it.
    """
    from tpudash.commands.operating import operate
    from tpudash.commands.target import check_name

    flags = ActFlags(*(options[name] for name in ("dry_run", "yes", "wait", "as_json")))
    check_can_confirm(flags)
    check_name(run)
    changes = changes_of(zones, options)
    return operate(state, flags, lambda room: room.plan_resume(run, changes), [run])


def changes_of(zones: tuple[str, ...], options: Mapping[str, Any]) -> ResumeChanges:
    """Return what is to be different when a run goes on."""
    from tpudash.commands.durations import parse_duration
    from tpudash.domain.operation import ResumeChanges

    valid = options["valid_until_duration"]
    return ResumeChanges(
        zones=tuple(dict.fromkeys(zones)),
        max_cost_usd=options["max_cost"],
        queued=options["queued"],
        valid_until_s=parse_duration(valid).total_seconds() if valid else None,
    )
