"""`tpudash cost`: what nodes, runs and owners cost per hour and have cost, as an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tpudash.commands.nodes import accrued, short_name
from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.wording.format import dollars

if TYPE_CHECKING:
    from tpudash.commands.facts import Facts
    from tpudash.cost.what_if import WhatIf

COLUMNS: Final = (
    Column("KIND", lambda item: item["kind"]),
    Column("NAME", lambda item: short_name(item["name"]), gives_way=True),
    Column("STATE", lambda item: item["state"]),
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("SCHEDULING", lambda item: item["scheduling"]),
    Column("$/CHIP H", lambda item: _chip_price(item), right=True),  # noqa: PLW0108
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("ACCRUED", accrued, right=True),
    Column("TODAY", lambda item: _part(item, "today"), right=True),
    Column("MONTH", lambda item: _part(item, "month"), right=True),
    Column("WASTED", lambda item: _wasted(item), right=True),  # noqa: PLW0108
    Column("PRICE FROM", lambda item: _price_source(item), gives_way=True),  # noqa: PLW0108
)
WHAT_IF_COLUMNS: Final = (
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("CHIPS", lambda item: item["chips"], right=True),
    Column("HOSTS", lambda item: item["hosts"], right=True),
    Column("HBM GiB", lambda item: f"{item['hbm_gib']:g}", right=True),
    Column("PEAK TFLOPS", lambda item: item["peak_tflops"], right=True),
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("$/H PER TFLOPS", lambda item: _per_tflop(item), right=True),  # noqa: PLW0108
    Column("PRICE FROM", lambda item: _price_source(item), gives_way=True),  # noqa: PLW0108
)
NO_RUN: Final = "(no run)"


def _chip_price(item: Item) -> str | None:
    price = item["price"]
    if not price:
        return None
    jumped = " !" if price["before_usd"] else ""
    return f"${price['per_chip_hour_usd']:.4g}{jumped}"


def _part(item: Item, part: str) -> str | None:
    return dollars(item[f"cost_{part}_usd"], at_least=item[f"cost_{part}_is_lower_bound"])


def _wasted(item: Item) -> str | None:
    wasted = item["wasted_usd"]
    return None if wasted is None else dollars(wasted["total"], at_least=wasted["is_lower_bound"])


def _per_tflop(item: Item) -> str | None:
    amount = item["cost_per_hour_per_peak_tflop_usd"]
    return None if amount is None else f"${amount:.5f}"


def _price_source(item: Item) -> str | None:
    price = item["price"]
    if not price:
        return None
    marks = " (example)" if price["is_example"] else ""
    if price["read"]:
        marks += f", read {price['read'][:10]}"
    if price["before_usd"]:
        marks += f", was ${price['before_usd']:.4g}"
    return f"{price['source']}, {price['as_of'] or 'undated'}{marks}"


@click.command()
@click.option("--what-if", "zone", metavar="ZONE", help="Compare the accelerator types of a zone.")
@click.option(
    "--scheduling",
    type=click.Choice(["spot", "on-demand", "preemptible"]),
    default="spot",
    show_default=True,
    help="With --what-if: how the capacity is obtained.",
)
@json_option
@connection_options
@pass_state
def cost(state: CliState, zone: str | None, scheduling: str, as_json: bool) -> None:
    """Estimate what each node, run and owner costs: chips x dated list price x time observed.

    Prices are list prices; discounts, disks, network and storage are not in them. Days and months
    are those of UTC.
    """
    if zone is not None:
        answer = run_async(_compare(state, zone, scheduling))
        print_answer(answer, WHAT_IF_COLUMNS, as_json=as_json, empty=f"no types in {zone}")
        return
    answer = run_async(_read(state))
    print_answer(answer, COLUMNS, as_json=as_json, empty="nothing costs anything here")
    if not as_json and answer.items:
        click.echo("estimates from list prices; see --json for each price's source", err=True)


async def _compare(state: CliState, zone: str, scheduling: str) -> Answer:
    import asyncio

    from tpudash.commands.output import SourceError
    from tpudash.commands.session import open_session, price_cache
    from tpudash.cost.what_if import what_if
    from tpudash.domain.node import Scheduling
    from tpudash.errors import TpudashError

    errors = []
    async with open_session(state) as session:
        now, book = session.clock.now(), session.prices
        offered = await session.cloud.tpu.list_accelerator_types(zone)
        try:
            prices = await session.cloud.billing.list_tpu_prices()
            kept = await asyncio.to_thread(price_cache(state).take, prices, now)
            book = book.with_catalog(kept)
        except TpudashError as error:
            errors = [SourceError.of("prices", error)]
    rows = what_if(zone, Scheduling(scheduling), book, offered=offered)
    return Answer(now, session.source, [_what_if_item(row, zone) for row in rows], errors=errors)


def _what_if_item(row: WhatIf, zone: str) -> Item:
    from tpudash.commands.items import price_item, rounded

    return {
        "accelerator_type": row.accelerator_type,
        "zone": zone,
        "chips": row.chips,
        "hosts": row.hosts,
        "hbm_gib": row.hbm_gib,
        "hbm_gib_per_chip": row.hbm_gib_per_chip,
        "peak_tflops": row.peak_tflops,
        "cost_per_hour_usd": rounded(row.per_hour_usd),
        "cost_per_hour_per_peak_tflop_usd": rounded(row.per_peak_tflop_usd),
        "price": price_item(row.price),
    }


async def _read(state: CliState) -> Answer:
    from tpudash.commands.cost_items import cost_items
    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        facts: Facts = await read_facts(session, runs=True, live_prices=True, audit=True)
    items: list[dict[str, Any]] = cost_items(facts)
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)
