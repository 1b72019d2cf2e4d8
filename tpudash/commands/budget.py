"""`tpudash budget`: the budgets that cover this project, beside our own estimate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from tpudash.commands.nodes import short_name
from tpudash.commands.output import Answer, Column, Item, print_answer, print_json
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import NotFoundError, UsageError
from tpudash.wording.format import dollars
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from tpudash.commands.facts import Facts
    from tpudash.commands.session import Session
    from tpudash.cost.budgets import BudgetState
    from tpudash.domain.budget import Budget, BudgetDraft

COLUMNS: Final = (
    Column("BUDGET", lambda item: item["display_name"] or short_name(item["name"]), gives_way=True),
    Column("COVERS", lambda item: item["scope"]),
    Column("PERIOD", lambda item: item["period"]),
    Column("AMOUNT", lambda item: _amount(item), right=True),  # noqa: PLW0108
    Column("ALERTS AT", lambda item: item["thresholds_text"], gives_way=True),
    Column("ESTIMATE", lambda item: _estimate(item), right=True),  # noqa: PLW0108
    Column("OF IT", lambda item: _share(item), right=True),  # noqa: PLW0108
    Column("NOTE", lambda item: item["note"], gives_way=True),
)


def _amount(item: Item) -> str | None:
    if item["amount"] is None:
        return "last period's"
    return f"{item['amount']:,.2f} {item['currency'] or 'USD'}"


def _estimate(item: Item) -> str | None:
    return dollars(item["estimated_spend_usd"], at_least=item["estimate_is_lower_bound"])


def _share(item: Item) -> str | None:
    share = item["estimated_share"]
    return None if share is None else f"{share:.0%}"


@click.group()
def budget() -> None:
    """List, create and change budget alerts.

    What was really spent is not in the budgets' API: the figures beside a budget are estimates of
    this project's TPU cost.
    """


@budget.command("list")
@json_option
@connection_options
@pass_state
def list_command(state: CliState, as_json: bool) -> None:
    """List the budgets that cover this project."""
    answer = run_async(_list(state))
    print_answer(answer, COLUMNS, as_json=as_json, empty="no budget covers this project")
    if not as_json and answer.items:
        click.echo("estimates of TPU cost; what was really spent is not in the API", err=True)


@budget.command()
@click.option("--name", metavar="TEXT", help="Name of the budget, at most 60 characters.")
@click.option("--amount", type=float, required=True, metavar="USD", help="Amount for a month.")
@click.option(
    "--threshold", "thresholds", multiple=True, metavar="SHARE", help="Such as 0.5 or 90%:forecast."
)
@click.option("--dry-run", is_flag=True, help="Print what would be done and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@connection_options
@pass_state
def create(
    state: CliState,
    name: str | None,
    amount: float,
    thresholds: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Create a monthly budget alert for this project; it stops nothing by itself."""
    from tpudash.cost.budgets import USUAL_THRESHOLDS, check_draft, parse_threshold
    from tpudash.domain.budget import BudgetDraft

    rules = tuple(parse_threshold(text) for text in thresholds) or USUAL_THRESHOLDS
    draft = check_draft(BudgetDraft(name, amount, rules))
    _check_can_ask(yes=yes, dry_run=dry_run)
    answer = run_async(_create(state, draft, dry_run=dry_run, yes=yes))
    _print(answer, as_json=as_json, dry_run=dry_run)


@budget.command()
@click.argument("which", metavar="BUDGET")
@click.option("--name", metavar="TEXT", help="New name.")
@click.option("--amount", type=float, metavar="AMOUNT", help="New amount, in its own currency.")
@click.option(
    "--threshold", "thresholds", multiple=True, metavar="SHARE", help="New thresholds, all of them."
)
@click.option("--dry-run", is_flag=True, help="Print what would be done and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@connection_options
@pass_state
def edit(
    state: CliState, /, which: str, dry_run: bool, yes: bool, as_json: bool, **changes: Any
) -> None:
    """Change a budget alert, named by its id, its full name or its display name."""
    from tpudash.cost.budgets import check_draft, parse_threshold
    from tpudash.domain.budget import BudgetDraft

    rules = tuple(parse_threshold(text) for text in changes["thresholds"]) or None
    draft = check_draft(BudgetDraft(changes["name"], changes["amount"], rules))
    if draft == BudgetDraft():
        raise UsageError("nothing to change", hint="give --name, --amount or --threshold")
    _check_can_ask(yes=yes, dry_run=dry_run)
    answer = run_async(_edit(state, which, draft, dry_run=dry_run, yes=yes))
    _print(answer, as_json=as_json, dry_run=dry_run)


async def _list(state: CliState) -> Answer:
    from tpudash.commands.facts import read_facts
    from tpudash.commands.screen_budgets import billing_account
    from tpudash.commands.session import open_session

    async with open_session(state) as session:
        account = await billing_account(session.cloud)
        budgets = await session.cloud.billing.list_covering_budgets(account)
        facts = await read_facts(session, runs=True, live_prices=True, audit=True)
    items = [_item(found, facts) for found in budgets]
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)


async def _create(state: CliState, draft: BudgetDraft, *, dry_run: bool, yes: bool) -> Answer:
    from dataclasses import replace

    from tpudash.commands.screen_budgets import billing_account
    from tpudash.commands.session import open_session

    async with open_session(state, read_only=False) as session:
        project = session.cloud.project
        named = replace(draft, display_name=draft.display_name or f"TPU {project}"[:60])
        account = await billing_account(session.cloud)
        if not _agreed(_lines(f"create a budget in {account}", named, project), dry_run, yes):
            return Answer(session.clock.now(), session.source, [_draft_item(named, project)])
        made = await session.cloud.billing.create_budget(account, named)
        return await _answer(session, made)


async def _edit(
    state: CliState, which: str, draft: BudgetDraft, *, dry_run: bool, yes: bool
) -> Answer:
    from tpudash.commands.screen_budgets import billing_account
    from tpudash.commands.session import open_session

    async with open_session(state, read_only=False) as session:
        account = await billing_account(session.cloud)
        found = _named(await session.cloud.billing.list_covering_budgets(account), which)
        title = f"change the budget {found.display_name or found.budget_id}"
        if not _agreed(_lines(title, draft, None), dry_run, yes):
            item = _draft_item(draft, None)
            return Answer(session.clock.now(), session.source, [{**item, "name": found.name}])
        made = await session.cloud.billing.update_budget(found, draft)
        return await _answer(session, made)


def _named(budgets: tuple[Budget, ...], which: str) -> Budget:
    """Return the one budget of that name.

    Raises:
        NotFoundError: There is none.
        UsageError: There are several.
    """
    found = [one for one in budgets if which in {one.name, one.budget_id, one.display_name}]
    if len(found) > 1:
        names = ", ".join(one.budget_id for one in found)
        raise UsageError(f"{which!r} is the name of {len(found)} budgets", hint=f"one of: {names}")
    if not found:
        raise NotFoundError(
            f"no budget {which!r} covers this project", hint="see: tpudash budget list"
        )
    return found[0]


def _check_can_ask(*, yes: bool, dry_run: bool) -> None:
    if yes or dry_run or (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    raise UsageError(
        "this changes a budget, and there is no terminal to ask on",
        hint="give --yes to go ahead, or --dry-run to see what would be done",
    )


def _agreed(lines: list[str], dry_run: bool, yes: bool) -> bool:
    """Whether to go ahead; False for a dry run.

    Raises:
        UsageError: The answer was not yes.
    """
    if not yes or dry_run:
        click.echo("\n".join(map(safe_text, lines)), err=True)
    if dry_run:
        return False
    if yes or click.confirm("go ahead?", default=False, err=True):
        return True
    raise UsageError("not confirmed; nothing was done")


def _lines(title: str, draft: BudgetDraft, project: str | None) -> list[str]:
    from tpudash.cost.budgets import describe

    lines = [title]
    if draft.display_name is not None:
        lines.append(f"  name: {draft.display_name}")
    if draft.amount is not None:
        lines.append(
            f"  amount: {draft.amount:,.2f} a month"
            if project
            else f"  amount: {draft.amount:,.2f}"
        )
    if draft.rules is not None:
        lines.append(f"  mail to the account's billing administrators at: {describe(draft.rules)}")
    if project is not None:
        lines.append(f"  counts: project {project}")
    lines.append("  a budget only tells; it stops and deletes nothing")
    return lines


def _print(answer: Answer, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json(answer)
    elif not dry_run:
        click.echo("\n".join(f"{item['display_name']}: {item['name']}" for item in answer.items))
    if dry_run:
        click.echo("dry run: nothing was done", err=True)


async def _answer(session: Session, made: Budget) -> Answer:
    from tpudash.commands.facts import read_facts

    facts = await read_facts(session, runs=True)
    return Answer(facts.as_of, session.source, [_item(made, facts)], errors=facts.errors)


def _item(found: Budget, facts: Facts) -> Item:
    from tpudash.commands.items import rounded
    from tpudash.cost.budgets import budget_state

    rate = facts.total_cost().per_hour_usd
    state: BudgetState = budget_state(found, facts.all_lives, rate, facts.as_of)
    return {
        **_budget_fields(found),
        "estimated_spend_usd": rounded(state.spent_usd),
        "estimate_is_lower_bound": state.is_lower_bound,
        "estimated_forecast_usd": rounded(state.forecast_usd),
        "estimated_share": rounded(state.share),
        "crossed": [rule.share for rule in state.crossed],
        "actual_spend_usd": None,
        "note": state.why_not or None,
    }


def _budget_fields(found: Budget) -> Item:
    from tpudash.cost.budgets import describe

    return {
        "name": found.name,
        "display_name": found.display_name or None,
        "scope": str(found.scope) if found.scope else None,
        "period": found.period,
        "amount": found.amount,
        "currency": found.currency or None,
        "thresholds": [{"share": rule.share, "basis": str(rule.basis)} for rule in found.rules],
        "thresholds_text": describe(found.rules) or None,
        "only_some_services": found.only_services,
    }


def _draft_item(draft: BudgetDraft, project: str | None) -> Item:
    rules = draft.rules or ()
    return {
        "name": None,
        "display_name": draft.display_name,
        "amount": draft.amount,
        "thresholds": [{"share": rule.share, "basis": str(rule.basis)} for rule in rules],
        "project": project,
    }
