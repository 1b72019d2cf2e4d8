"""`tpudash requests`: queued resources of all zones."""

from __future__ import annotations

import click

from tpudash.commands.nodes import PROJECT, short_name, span
from tpudash.commands.output import Answer, Column, SourceError, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state

COLUMNS = (
    Column("NAME", lambda item: short_name(item["name"]), gives_way=True),
    Column("ZONE", lambda item: item["zone"]),
    Column("STATE", lambda item: item["state"]),
    Column("BY", lambda item: item["initiator"]),
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("AGE", lambda item: span(item["age_s"]), right=True),
    Column("NODES", lambda item: ", ".join(short_name(one) or "" for one in item["nodes"])),
    Column("FAILURE", lambda item: item["failure"], gives_way=True),
)


@click.command()
@json_option
@connection_options
@pass_state
def requests(state: CliState, as_json: bool) -> None:
    """List queued resources of all zones."""
    answer = run_async(_read(state))
    columns = (PROJECT, *COLUMNS) if len(state.settings.projects) > 1 else COLUMNS
    print_answer(answer, columns, as_json=as_json, empty="no queued resources")


async def _read(state: CliState) -> Answer:
    from tpudash.commands.items import request_item
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        as_of = session.clock.now()
        listing = await session.cloud.tpu.list_requests()
    items = [request_item(request, as_of) for request in listing.requests]
    errors = SourceError.of_refusals(listing.refusals)
    return Answer(as_of, session.source, items, listing.unreachable, errors)
