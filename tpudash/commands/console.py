"""`tpudash` and `tpudash console`: the operator's screen."""

from __future__ import annotations

import click

from tpudash.commands.state import CliState, connection_options, pass_state, screen_options


@click.command()
@connection_options
@screen_options
@pass_state
def console(state: CliState) -> int:
    """Open the operator console.

    Capital letters change the cloud, and always ask. `?` shows every key; `q` leaves, and nodes
    keep running.
    """
    from tpudash.commands.lazy_operations import LazyOperations
    from tpudash.commands.operator_ports import operator_ports
    from tpudash.commands.screen import ScreenParts, begin_screen, run_screen

    begin_screen(state)
    parts = ScreenParts(state, is_operator=True)
    operations = LazyOperations(parts)
    return run_screen(parts, operations=operations, ports=operator_ports(parts, operations))
