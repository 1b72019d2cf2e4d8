"""`tpudash themes`: which themes there are, and what is wrong with those that can't be used."""

from __future__ import annotations

import click

from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.state import CliState, connection_options, json_option, pass_state


def _kind(item: Item) -> str:
    if item["problem"]:
        return "broken"
    return ("dark" if item["dark"] else "light") + (" ansi" if item["ansi"] else "")


COLUMNS = (
    Column("NAME", lambda item: item["name"]),
    Column("KIND", _kind),
    Column("FROM", lambda item: "tpudash" if item["builtin"] else "you"),
    Column("WHAT IT IS", lambda item: item["problem"] or item["title"], gives_way=True),
)


@click.command()
@json_option
@connection_options
@pass_state
def themes(state: CliState, as_json: bool) -> None:
    """List the themes: those of tpudash, and your own in the settings folder."""
    from tpudash.clock import SystemClock
    from tpudash.config.themes import list_themes

    items = [
        {
            "name": info.name,
            "title": info.title,
            "builtin": info.is_builtin,
            "dark": info.dark,
            "ansi": info.ansi,
            "path": str(info.path),
            "problem": info.problem or None,
        }
        for info in list_themes(state.paths.themes_dir)
    ]
    answer = Answer(SystemClock().now(), str(state.paths.themes_dir), items)
    print_answer(answer, COLUMNS, as_json=as_json, empty="no themes")
