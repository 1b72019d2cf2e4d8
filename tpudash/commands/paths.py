"""`tpudash paths`: where tpudash keeps its files."""

from __future__ import annotations

import click

from tpudash.commands.output import Answer, details, print_json
from tpudash.commands.state import CliState, connection_options, json_option, pass_state


@click.command()
@json_option
@connection_options
@pass_state
def paths(state: CliState, as_json: bool) -> None:
    """Show where tpudash keeps its files, and which of them exist.

    TPUDASH_CONFIG_DIR, TPUDASH_STATE_DIR and TPUDASH_CACHE_DIR name other folders.
    """
    found = state.paths
    places = {
        "settings": state.config or found.config_file,
        "themes": found.themes_dir,
        "state": found.state_dir,
        "log": found.log_file,
        "demo": found.demo_dir,
        "cache": found.cache_dir,
    }
    if as_json:
        from tpudash.clock import SystemClock

        items = [
            {"name": name, "path": str(path), "exists": path.exists()}
            for name, path in places.items()
        ]
        print_json(Answer(SystemClock().now(), "this machine", items))
        return
    rows = {
        name: f"{path}{'' if path.exists() else '  (not there yet)'}"
        for name, path in places.items()
    }
    click.echo("\n".join(details(rows)))
