"""`tpudash` and `tpudash console`: the operator's screen."""

from __future__ import annotations

from typing import Final

import click

from tpudash.commands.state import CliState, connection_options, pass_state, screen_options

NEWCOMER_NOTE: Final = (
    "No project is named and nobody is signed in to Google Cloud, so this is a local emulator:"
    " launch, preempt and delete as you like, nothing costs money. For your own TPUs:"
    " gcloud auth application-default login, then tpudash --project ID."
)


@click.command()
@connection_options
@screen_options
@pass_state
def console(state: CliState) -> int:
    """Open the operator console.

    Capital letters change the cloud, and always ask. `?` shows every key; `q` leaves, and nodes
    keep running. Where no project is named and nobody is signed in to Google Cloud, it opens on a
    local emulator, which ends with it.
    """
    if _is_newcomer(state):
        from tpudash.commands.local_console import open_local_console

        return open_local_console(state, notice=NEWCOMER_NOTE)
    from tpudash.commands.lazy_operations import LazyOperations
    from tpudash.commands.operator_ports import operator_ports
    from tpudash.commands.screen import ScreenParts, begin_screen, run_screen

    begin_screen(state)
    parts = ScreenParts(state, is_operator=True)
    operations = LazyOperations(parts)
    return run_screen(parts, operations=operations, ports=operator_ports(parts, operations))


def _is_newcomer(state: CliState) -> bool:
    """Whether nothing on this machine says which cloud is meant."""
    from tpudash.gateways.credential_files import could_sign_in

    settings = state.settings
    named = (settings.first_project, settings.endpoint, settings.impersonate)
    return not any(named) and not could_sign_in()
