"""`tpudash nodes`: TPU nodes of all zones."""

from __future__ import annotations

from typing import Final

import click

from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.wording.format import dollars


def short_name(name: str | None) -> str | None:
    """Return the last segment of a resource name."""
    return name.rsplit("/", 1)[-1] if name else None


def span(seconds: float | None) -> str:
    """Return seconds as a short span."""
    from datetime import timedelta

    from tpudash.wording.format import duration

    return duration(None if seconds is None else timedelta(seconds=seconds))


def accrued(item: Item) -> str:
    """Return what a thing has cost so far."""
    return dollars(item["cost_accrued_usd"], at_least=item["cost_is_lower_bound"])


NO_NODES: Final = "no nodes (TPU7x and later are no Cloud TPU nodes: gcloud compute instances list)"
"""The Cloud TPU API ends with v6e; later generations exist in Compute Engine and GKE alone.

Source: https://cloud.google.com/tpu/docs/tpus-in-compute-engine
"""

PROJECT = Column("PROJECT", lambda item: item["project"], gives_way=True)
COLUMNS = (
    Column("NAME", lambda item: short_name(item["name"]), gives_way=True),
    Column("ZONE", lambda item: item["zone"]),
    Column("STATE", lambda item: item["state"]),
    Column("HEALTH", lambda item: item["health"], gives_way=True, spare=True),
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("CHIPS", lambda item: item["chips"], right=True, spare=True),
    Column("HOSTS", lambda item: item["hosts"], right=True, spare=True),
    Column("SCHEDULING", lambda item: item["scheduling"]),
    Column("AGE", lambda item: span(item["age_s"]), right=True),
    Column("RUN", lambda item: item["run"], gives_way=True),
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("ACCRUED", accrued, right=True),
)


@click.command()
@click.option("--zone", "zones", multiple=True, metavar="ZONE", help="Only these zones.")
@json_option
@connection_options
@pass_state
def nodes(state: CliState, zones: tuple[str, ...], as_json: bool) -> None:
    """List TPU nodes of all zones, with state, run and estimated cost."""
    answer = run_async(_read(state, zones))
    columns = (PROJECT, *COLUMNS) if len(state.settings.projects) > 1 else COLUMNS
    print_answer(answer, columns, as_json=as_json, empty=NO_NODES)


async def _read(state: CliState, zones: tuple[str, ...]) -> Answer:
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        facts = await read_facts(session, runs=True, maintenance=True)
    items = [item for item in facts.node_items() if not zones or item["zone"] in zones]
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)
