"""`tpudash metrics`: utilization of a run's or a node's workers, and the run's training curve."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import click

from tpudash.commands.nodes import short_name, span
from tpudash.commands.output import Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import UsageError
from tpudash.wording.format import bytes_size, number
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from tpudash.commands.output import Answer


def _value(item: Item) -> str | None:
    value: float | None = item["value"]
    if value is None:
        return str(item["reason"]) if item["reason"] else None
    if item["unit"] in {"By", "By/s"}:
        return bytes_size(value) + str(item["unit"])[2:]
    return number(value) + (" %" if item["unit"] == "%" else "")


CSV_COLUMNS = (
    *("time", "node", "run", "worker", "metric", "measure", "unit", "value", "step", "attempt"),
)
COLUMNS = (
    Column("NODE", lambda item: short_name(item["node"]) or item["run"], gives_way=True),
    Column("WORKER", lambda item: item["worker"]),
    Column("MEASURE", lambda item: item["measure"]),
    Column("VALUE", _value, right=True),
    Column("AGE", lambda item: span(item["age_s"]), right=True),
    Column("POINTS", lambda item: len(item["points"]), right=True),
)


@click.command()
@click.argument("name", metavar="RUN|NODE")
@click.option("--since", default="30m", metavar="AGE|TIME", help="Begin there: 15m, 2h, a time.")
@click.option("--csv", "as_csv", is_flag=True, help="Print every point as CSV.")
@json_option
@connection_options
@pass_state
def metrics(state: CliState, name: str, since: str, as_csv: bool, as_json: bool) -> None:
    """Show utilization by node and worker, and for a run its training curve.

    Metrics of Cloud TPU are sampled every 60 s and become visible up to 180 s later.
    """
    if as_csv and as_json:
        raise UsageError("--csv and --json can't be had at the same time")
    answer = run_async(_metrics(state, name, since))
    if as_csv:
        _print_csv(answer)
        return
    empty = f"no metrics of {name} since {since}; they become visible up to 180 s late"
    print_answer(answer, COLUMNS, as_json=as_json, empty=empty)


def _print_csv(answer: Answer) -> None:
    """Print one row for each point, and what is missing from the answer to stderr."""
    writer = csv.DictWriter(sys.stdout, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for item in answer.items:
        for point in item["points"]:
            writer.writerow({**item, **point})
    for location in answer.unreachable:
        click.echo(f"unreachable: {safe_text(location)}: what is there is not known", err=True)
    for error in answer.errors:
        click.echo(f"incomplete: {error.source}: {safe_text(error.title)}", err=True)


async def _metrics(state: CliState, name: str, since: str) -> Answer:
    from tpudash.commands.metric_items import read_metrics

    return await read_metrics(state, name, since)
