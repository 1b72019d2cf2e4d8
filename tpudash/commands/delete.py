"""`tpudash delete`: what a run holds in the cloud, or one node, is given back."""

from __future__ import annotations

import click

from tpudash.commands.acting import ActFlags, acting_options, check_can_confirm
from tpudash.commands.state import CliState, pass_state


@click.command()
@click.argument("names", metavar="RUN|NODE", nargs=-1, required=True)
@acting_options
@pass_state
def delete(
    state: CliState, names: tuple[str, ...], dry_run: bool, yes: bool, wait: bool, as_json: bool
) -> int:
    """Delete the nodes and queued requests of a run, or a node by its full name.

    Checkpoints, logs and records are kept. Deleting what is gone already is done.
    """
    from tpudash.commands.operating import operate
    from tpudash.commands.target import check_name

    flags = ActFlags(dry_run, yes, wait, as_json)
    check_can_confirm(flags)
    targets = tuple(dict.fromkeys(check_name(name) for name in names))
    return operate(state, flags, lambda room: room.plan_delete(targets), targets)
