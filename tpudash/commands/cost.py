"""`tpudash cost`: what nodes cost per hour and have cost, as an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tpudash.commands.nodes import accrued, short_name
from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.tui.format import dollars

if TYPE_CHECKING:
    from tpudash.commands.facts import Facts

COLUMNS = (
    Column("KIND", lambda item: item["kind"]),
    Column("NAME", lambda item: short_name(item["name"]), gives_way=True),
    Column("STATE", lambda item: item["state"]),
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("SCHEDULING", lambda item: item["scheduling"], spare=True),
    Column("$/CHIP H", lambda item: _chip_price(item), right=True),  # noqa: PLW0108
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("ACCRUED", accrued, right=True),
    Column("PRICE FROM", lambda item: _price_source(item), gives_way=True, spare=True),  # noqa: PLW0108
)


def _chip_price(item: Item) -> str | None:
    price = item["price"]
    return f"${price['per_chip_hour_usd']:.4g}" if price else None


def _price_source(item: Item) -> str | None:
    price = item["price"]
    if not price:
        return None
    example = " (example)" if price["is_example"] else ""
    return f"{price['source']}, {price['as_of'] or 'undated'}{example}"


@click.command()
@json_option
@connection_options
@pass_state
def cost(state: CliState, as_json: bool) -> None:
    """Estimate what each node and run costs: chips x dated list price x time observed.

    Prices are list prices; discounts, disks, network and storage are not in them.
    """
    answer = run_async(_read(state))
    print_answer(answer, COLUMNS, as_json=as_json, empty="nothing costs anything here")
    if not as_json and answer.items:
        click.echo("estimates from list prices; see --json for each price's source", err=True)


async def _read(state: CliState) -> Answer:
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        facts = await read_facts(session, runs=True, live_prices=True)
    items = [*_node_rows(facts), *_run_rows(facts), _total_row(facts)]
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)


def _node_rows(facts: Facts) -> list[Item]:
    from tpudash.commands.items import cost_fields, price_item

    rows = []
    for node in facts.listing.nodes:
        estimate = facts.node_cost(node)
        rows.append(
            {
                "kind": "node",
                "name": node.name,
                "run": node.run,
                "state": node.state,
                "accelerator_type": node.accelerator_type or None,
                "scheduling": str(node.scheduling),
                **cost_fields(estimate),
                "price": price_item(estimate.price),
            }
        )
    return rows


def _run_rows(facts: Facts) -> list[Item]:
    from tpudash.commands.items import cost_fields, price_item

    rows = []
    for run in facts.runs:
        estimate = facts.run_cost(run)
        spec = run.spec
        rows.append(
            {
                "kind": "run",
                "name": run.name,
                "run": run.name,
                "state": str(run.state),
                "accelerator_type": spec.accelerator_type if spec else None,
                "scheduling": str(spec.scheduling) if spec else None,
                **cost_fields(estimate),
                "price": price_item(estimate.price),
            }
        )
    return rows


def _total_row(facts: Facts) -> Item:
    """Return the sum: every node, and of runs the attempts whose nodes are gone."""
    from tpudash.commands.items import cost_fields

    return {
        "kind": "total",
        "name": facts.project,
        "run": None,
        "state": None,
        "accelerator_type": None,
        "scheduling": None,
        **cost_fields(facts.total_cost()),
        "price": None,
    }
