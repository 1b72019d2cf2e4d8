"""`tpudash config`: what every setting is, and who set it."""

from __future__ import annotations

import click

from tpudash.commands.output import Answer, Column, print_answer
from tpudash.commands.state import CliState, connection_options, json_option, pass_state

COLUMNS = (
    Column("SETTING", lambda item: item["key"]),
    Column("VALUE", lambda item: _shown(item["value"])),
    Column("SET BY", lambda item: item["set_by"]),
    Column("WHAT IT IS", lambda item: item["explanation"], gives_way=True),
)


@click.group()
def config() -> None:
    """Show or check the settings: defaults, then the file, the environment, and flags."""


@config.command()
@json_option
@connection_options
@pass_state
def show(state: CliState, as_json: bool) -> None:
    """Show every setting, its value, and who set it."""
    from tpudash.clock import SystemClock

    loaded = state.loaded
    items = [
        {
            "key": key,
            "value": list(value) if isinstance(value, tuple) else value,
            "set_by": str(origin),
            "explanation": explanation,
        }
        for key, value, origin, explanation in loaded.rows()
    ]
    answer = Answer(SystemClock().now(), loaded.file or "no settings file", items)
    print_answer(answer, COLUMNS, as_json=as_json, empty="no settings")


@config.command()
@connection_options
@pass_state
def check(state: CliState) -> None:
    """Check the settings file, the variables, the endpoint, the keys of actions and the theme."""
    from tpudash.config.load import unknown_variables
    from tpudash.config.themes import find_theme
    from tpudash.gateways.endpoint import parse_endpoint

    loaded = state.loaded
    _check_keys(dict(loaded.settings.keys))
    if loaded.settings.endpoint is not None:
        parse_endpoint(loaded.settings.endpoint)
    find_theme(loaded.settings.theme, state.paths.themes_dir)
    for name in unknown_variables():
        click.echo(f"warning: nothing reads the variable {name}", err=True)
    where = loaded.file or f"no file at {state.paths.config_file}"
    changed = sum(1 for _ in loaded.origins)
    click.echo(f"settings are fine: {where}, {changed} set")


def _check_keys(chosen: dict[str, str]) -> None:
    if not chosen:
        return
    from tpudash.config.keymap import resolve_keymap
    from tpudash.tui.actions import ACTIONS

    resolve_keymap(ACTIONS, chosen)


def _shown(value: object) -> str | None:
    if value is None or value in ([], ""):
        return None
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
