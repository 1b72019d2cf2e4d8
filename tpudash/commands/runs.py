"""`tpudash runs`: training runs with their attempts."""

from __future__ import annotations

import click

from tpudash.commands.nodes import accrued, span
from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.wording.format import dollars, number


def _steps(item: Item) -> str | None:
    if item["step"] is None:
        return None
    target = item["target_step"]
    return f"{item['step']}" if target is None else f"{item['step']}/{target}"


COLUMNS = (
    Column("NAME", lambda item: item["name"], gives_way=True),
    Column("OWNER", lambda item: item["owner"], gives_way=True, spare=True),
    Column("STATE", lambda item: item["state"]),
    Column("STEP", _steps, right=True),
    Column("SAVED", lambda item: item["checkpoint_step"], right=True, spare=True),
    Column("LOSS", lambda item: number(item["loss"]), right=True),
    Column("EX/S", lambda item: number(item["examples_per_second"]), right=True, spare=True),
    Column("ATTEMPTS", lambda item: len(item["attempts"]), right=True, spare=True),
    Column("LOST", lambda item: item["steps_lost"], right=True, spare=True),
    Column("HEARD", lambda item: span(item["last_heard_age_s"]), right=True),
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("ACCRUED", accrued, right=True),
    Column("REASON", lambda item: item["reason"], gives_way=True),
)


@click.command()
@json_option
@connection_options
@pass_state
def runs(state: CliState, as_json: bool) -> None:
    """List training runs: state, progress, attempts, steps lost, and estimated cost."""
    answer = run_async(_read(state))
    print_answer(answer, COLUMNS, as_json=as_json, empty="no runs; see: tpudash launch --help")


async def _read(state: CliState) -> Answer:
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        facts = await read_facts(session, runs=True)
    facts.raise_for("runs")
    return Answer(
        facts.as_of,
        session.source,
        facts.run_items(),
        facts.listing.unreachable,
        facts.errors,
    )
