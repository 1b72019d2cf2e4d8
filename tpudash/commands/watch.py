"""`tpudash watch`: the screen without operations. Nothing here can change the cloud."""

from __future__ import annotations

import click

from tpudash.commands.state import CliState, connection_options, pass_state, screen_options


@click.command()
@click.option(
    "--panes",
    metavar="PANE,...",
    help="Panes to show: nodes, utilization, logs, cost, checklist.",
)
@click.option(
    "--rotate",
    metavar="TIME",
    help="Show one pane after the other, each for so long: 20s, 1m. 0 for never.",
)
@connection_options
@screen_options
@pass_state
def watch(state: CliState, panes: str | None, rotate: str | None) -> int:
    """Open the read-only screen, for a shared display.

    It is built without operations: there is no key, palette entry or command in it that could
    change the cloud. It asks for read-only access wherever Google offers that. The Cloud TPU API
    offers none: the setting watch_impersonate names a viewer account to act as.
    """
    from tpudash.commands.screen import ScreenParts, begin_screen, run_screen

    if panes:
        names = tuple(name.strip() for name in panes.split(",") if name.strip())
        state.flags["panes"] = names
    if rotate:
        from tpudash.commands.durations import parse_duration

        state.flags["rotate_s"] = parse_duration(rotate).total_seconds()
    if "impersonate" in state.flags:
        # A flag says more than a setting, also than the one for watch mode alone.
        state.flags["watch_impersonate"] = state.flags["impersonate"]
    begin_screen(state)
    return run_screen(ScreenParts(state))
