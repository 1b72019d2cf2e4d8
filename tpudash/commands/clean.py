"""`tpudash clean`: what is dead, leaked, idle or over its time, and deleting it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.acting import ActFlags, check_can_confirm
from tpudash.commands.nodes import short_name, span
from tpudash.commands.output import Answer, Column, Item, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import ExitCode, NotFoundError
from tpudash.wording.format import dollars

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.cost.cleanup import Candidate, CleanupRules

COLUMNS: Final = (
    Column("MARKED", lambda item: "yes" if item["marked"] else ""),
    Column("NAME", lambda item: short_name(item["name"]), gives_way=True),
    Column("ZONE", lambda item: item["zone"]),
    Column("STATE", lambda item: item["state"]),
    Column("TYPE", lambda item: item["accelerator_type"]),
    Column("REASON", lambda item: item["reason"]),
    Column("FOR", lambda item: span(item["since_s"]), right=True),
    Column("$/H", lambda item: dollars(item["cost_per_hour_usd"]), right=True),
    Column("CHIPS", lambda item: item["quota_chips"], right=True),
    Column("OWNER", lambda item: item["owner"]),
    Column("WHY", lambda item: item["why"], gives_way=True),
)


@dataclass(frozen=True, slots=True)
class _Found:
    facts: Facts
    source: str
    candidates: tuple[Candidate, ...]
    chosen: tuple[Candidate, ...]


@click.command()
@click.argument("names", metavar="[NAME]", nargs=-1)
@click.option("--delete", "apply", is_flag=True, help="Delete what is marked, after asking.")
@click.option("--dry-run", is_flag=True, help="Only list; this is the default.")
@click.option(
    "--idle-for", metavar="TIME", default="15m", show_default=True, help="Least idle time, as 30m."
)
@click.option("--older-than", metavar="TIME", help="Nodes older than this are over their time.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", is_flag=True, help="Return when it has come to its end.")
@json_option
@connection_options
@pass_state
def clean(
    state: CliState,
    /,
    names: tuple[str, ...],
    apply: bool,
    idle_for: str,
    older_than: str | None,
    **flags: bool,
) -> int:
    """List what is dead, leaked, idle or over its time, with what it costs and holds.

    Marked is what tpudash made; with names, what they name and nothing else. Nothing is deleted
    without --delete, and never a checkpoint.
    """
    from tpudash.commands.durations import parse_duration
    from tpudash.cost.cleanup import CleanupRules

    act = ActFlags(
        dry_run=flags["dry_run"] or not apply,
        yes=flags["yes"],
        wait=flags["wait"],
        as_json=flags["as_json"],
    )
    check_can_confirm(act)
    rules = CleanupRules(
        idle_for=parse_duration(idle_for),
        max_age=parse_duration(older_than) if older_than else None,
    )
    found = run_async(_find(state, names, rules))
    items = [_item(one, found.chosen, found.facts.as_of) for one in found.candidates]
    if act.dry_run or not found.chosen:
        _print(found, items, act)
        return ExitCode.DONE
    if not act.as_json:
        _print(found, items, act)
    return _delete(state, act, found.chosen)


async def _find(state: CliState, names: tuple[str, ...], rules: CleanupRules) -> _Found:
    from dataclasses import replace

    from tpudash.commands.facts import read_facts
    from tpudash.commands.session import open_session
    from tpudash.cost.cleanup import cleanup_candidates, marked

    async with open_session(state) as session:
        facts = await read_facts(session, runs=True)
        source = session.source
    known = not any(error.source == "runs" for error in facts.errors)
    rules = replace(rules, runs_known=known)
    candidates = cleanup_candidates(facts.snapshot, facts.all_lives, facts.as_of, rules)
    chosen = marked(candidates, names)
    hit = {word for one in chosen for word in (one.name, short_name(one.name), one.run) if word}
    missed = [name for name in names if name not in hit]
    if missed:
        raise NotFoundError(
            f"not among what could go: {', '.join(missed)}",
            hint="see: tpudash clean; to delete anything else: tpudash delete NAME",
        )
    return _Found(facts, source, candidates, chosen)


def _print(found: _Found, items: list[Item], flags: ActFlags) -> None:
    facts = found.facts
    answer = Answer(facts.as_of, found.source, items, facts.listing.unreachable, facts.errors)
    print_answer(answer, COLUMNS, as_json=flags.as_json, empty="nothing is dead, leaked or idle")
    if flags.as_json or not items:
        return
    rate = sum(one.per_hour_usd or 0.0 for one in found.chosen)
    chips = sum(one.chips or 0 for one in found.chosen)
    click.echo(
        f"marked: {len(found.chosen)} of {len(items)}, {dollars(rate)} an hour, {chips} chips",
        err=True,
    )
    if flags.dry_run:
        click.echo("nothing was deleted; to delete what is marked: --delete", err=True)


def _delete(state: CliState, flags: ActFlags, chosen: tuple[Candidate, ...]) -> int:
    from tpudash.commands.operating import operate

    targets = tuple(one.name for one in chosen)
    return operate(state, flags, lambda room: room.plan_delete(targets), targets)


def _item(one: Candidate, chosen: tuple[Candidate, ...], now: datetime) -> Item:
    from tpudash.commands.items import age_s, rounded

    return {
        "kind": "node" if one.is_node else "request",
        "name": one.name,
        "reason": str(one.reason),
        "why": one.why,
        "marked": one in chosen,
        "made_by_tpudash": one.is_ours,
        "state": one.state,
        "accelerator_type": one.accelerator_type or None,
        "zone": one.zone,
        "run": one.run,
        "owner": one.owner,
        "since_s": age_s(one.since, now),
        "cost_per_hour_usd": rounded(one.per_hour_usd),
        "cost_accrued_usd": rounded(one.accrued_usd),
        "quota_chips": one.chips,
    }
