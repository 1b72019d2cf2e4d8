"""`tpudash doctor`: the troubleshooting checklist, once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.nodes import short_name
from tpudash.commands.output import Column, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.commands.output import Answer
    from tpudash.commands.session import Session
    from tpudash.store.store import Store

LOG_SPAN: Final = timedelta(days=1)
MOST_ENTRIES: Final = 1_000

COLUMNS = (
    Column("VERDICT", lambda item: item["verdict"]),
    Column("CHECK", lambda item: item["title"]),
    Column("SUBJECT", lambda item: short_name(item["subject"])),
    Column("EVIDENCE", lambda item: item["evidence"], gives_way=True),
    Column("WHAT TO DO", lambda item: item["command"] or item["advice"], gives_way=True),
)


@click.command()
@click.argument("name", metavar="[RUN|NODE]", required=False)
@json_option
@connection_options
@pass_state
def doctor(state: CliState, name: str | None, as_json: bool) -> None:
    """Run the troubleshooting checklist on everything, or on one run or node.

    Worst first. What could not be found out is unknown, never a pass.
    """
    answer = run_async(_examine(state, name))
    print_answer(answer, COLUMNS, as_json=as_json, empty="no checks")


async def _examine(state: CliState, name: str | None) -> Answer:
    from tpudash.commands.facts import read_facts
    from tpudash.commands.items import finding_item
    from tpudash.commands.output import Answer
    from tpudash.commands.session import open_session
    from tpudash.commands.target import check_name, need_target
    from tpudash.diagnostics.checklist import run_checklist
    from tpudash.diagnostics.evidence import gather

    if name is not None:
        check_name(name)
    async with open_session(state) as session:
        facts = await read_facts(session, runs=True)
        if name is not None:
            need_target(facts, name)
        store = await _store_of(session, facts)
        now = session.clock.now()
    findings = run_checklist(gather(store, session.prices, now, subject=name, actions=frozenset()))
    items = [finding_item(finding) for finding in findings]
    return Answer(facts.as_of, session.source, items, facts.listing.unreachable, facts.errors)


async def _store_of(session: Session, facts: Facts) -> Store:
    """Return a store that knows what one look at everything tells."""
    from tpudash.errors import TpudashError
    from tpudash.gateways.log_filters import all_of, since_filter
    from tpudash.pollers.log_tail import WORKERS_FILTER
    from tpudash.store import changes
    from tpudash.store.snapshot import LOGS, NODES, RUNS, ConnectionInfo
    from tpudash.store.store import Store

    store = Store()
    cloud = session.cloud
    info = ConnectionInfo(
        cloud.project, session.settings.endpoint, cloud.account, cloud.is_emulator
    )
    store.apply(changes.Connected(info))
    store.apply(changes.NodesListed(facts.listing, facts.as_of))
    _report(store, facts, NODES, facts.as_of)
    store.apply(changes.RunsRead(facts.runs, facts.as_of))
    _report(store, facts, RUNS, facts.as_of)
    start = session.clock.now() - LOG_SPAN
    try:
        entries = await cloud.logging.list_entries(
            all_of(WORKERS_FILTER, since_filter(start)), newest_first=True, limit=MOST_ENTRIES
        )
        store.apply(changes.LogsArrived(entries))
    except TpudashError as error:
        facts.failed(LOGS, error)
    _report(store, facts, LOGS, facts.as_of)
    return store


def _report(store: Store, facts: Facts, source: str, as_of: datetime) -> None:
    """Tell the store how a source did."""
    from tpudash.store.changes import SourceReported
    from tpudash.store.snapshot import SourceState, SourceStatus

    error = facts.failures.get(source)
    if error is None:
        status = SourceStatus(source, SourceState.OK, as_of, as_of)
    else:
        status = SourceStatus(
            source, SourceState.FAILING, None, as_of, error.title, error.detail, error.hint
        )
    store.apply(SourceReported(status))
