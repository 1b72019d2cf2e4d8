"""`tpudash resume`: a run goes on, on a new node, from its last good checkpoint."""

from __future__ import annotations

import click

from tpudash.commands.acting import ActFlags, acting_options, check_can_confirm
from tpudash.commands.state import CliState, pass_state


@click.command()
@click.argument("run")
@acting_options
@pass_state
def resume(state: CliState, run: str, dry_run: bool, yes: bool, wait: bool, as_json: bool) -> int:
    """Continue RUN on a new node from its last good checkpoint.

    The dead node is deleted first and awaited until it is gone. A run whose node is READY and
    training is refused, because two trainers of one run would spoil it.
    """
    from tpudash.commands.operating import operate
    from tpudash.commands.target import check_name

    flags = ActFlags(dry_run, yes, wait, as_json)
    check_can_confirm(flags)
    check_name(run)
    return operate(state, flags, lambda room: room.plan_resume(run), [run])
