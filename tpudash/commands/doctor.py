"""`tpudash doctor`: the troubleshooting checklist, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click

from tpudash.commands.nodes import short_name, span
from tpudash.commands.output import Column, print_answer
from tpudash.commands.running import run_async
from tpudash.commands.state import CliState, connection_options, json_option, pass_state
from tpudash.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.commands.facts import Facts
    from tpudash.commands.output import Answer, Item
    from tpudash.commands.session import Session
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.pollers.probes import ProbeBook
    from tpudash.store.store import Store

LOG_SPAN: Final = timedelta(days=1)
MOST_ENTRIES: Final = 1_000
METRICS_SPAN: Final = timedelta(minutes=10)
_BETWEEN_SCRAPES_S: Final = 1.0

COLUMNS = (
    Column("VERDICT", lambda item: item["verdict"]),
    Column("CHECK", lambda item: item["title"]),
    Column("SUBJECT", lambda item: short_name(item["subject"])),
    Column("AGE", lambda item: span(item["age_s"]), right=True),
    Column("EVIDENCE", lambda item: item["evidence"], gives_way=True),
    Column("WHAT TO DO", lambda item: item["command"] or item["advice"], gives_way=True),
)


@click.command()
@click.argument("name", metavar="[RUN|NODE]", required=False)
@click.option("--node", "node", metavar="NODE", help="Only this node and its run.")
@click.option("--run", "run", metavar="RUN", help="Only this run and its nodes.")
@json_option
@connection_options
@pass_state
def doctor(
    state: CliState, name: str | None, node: str | None, run: str | None, as_json: bool
) -> None:
    """Run the troubleshooting checklist on everything, or on one run or node.

    Worst first, and within that the likeliest cause. What could not be found out is unknown, never
    a pass. It only looks.
    """
    named = [one for one in (name, node, run) if one is not None]
    if len(named) > 1:
        raise UsageError("name one run or node", detail=", ".join(named))
    answer = run_async(_examine(state, named[0] if named else None, as_json=as_json))
    print_answer(answer, COLUMNS, as_json=as_json, empty="no checks")


async def _examine(state: CliState, name: str | None, *, as_json: bool) -> Answer:
    from tpudash.commands.output import Answer
    from tpudash.commands.session import journal_file, open_session
    from tpudash.commands.target import check_name, need_target
    from tpudash.diagnostics.checklist import SEVERITY, probes_for, run_checklist
    from tpudash.pollers.probes import ProbeBook
    from tpudash.store.snapshot import NODES

    if name is not None:
        check_name(name)
    async with open_session(state) as session:
        facts = await _read(session)
        if name is not None and NODES not in facts.failures:
            need_target(facts, name)
        store = await _store_of(session, facts)
        book = ProbeBook(session.clock, journal=journal_file(state))
        evidence = _evidence(session, facts, store, name, book)
        await book.ask(session.cloud, book.due(probes_for(evidence)))
        evidence = _evidence(session, facts, store, name, book)
        rights = await _rights(session, facts) if name is None else ()
    findings = (*run_checklist(evidence, join=not as_json), *rights)
    findings = tuple(sorted(findings, key=lambda row: SEVERITY.index(row.verdict)))
    return Answer(
        facts.as_of,
        session.source,
        _items(findings, evidence.now),
        facts.listing.unreachable,
        facts.errors,
    )


async def _rights(session: Session, facts: Facts) -> tuple[Finding, ...]:
    """Try each API and each right of each project, one by one."""
    from tpudash.commands.rights import try_rights
    from tpudash.diagnostics.rights import judge

    found: list[Finding] = []
    for cloud in session.cloud.each or (session.cloud,):
        tried = await try_rights(session, facts, cloud)
        rows = judge(tried, cloud.project, session.clock.now())
        if session.cloud.each:
            rows = tuple(replace(row, subject=f"projects/{cloud.project}") for row in rows)
        found += rows
    return tuple(found)


async def _read(session: Session) -> Facts:
    """Read what can be read; that the nodes can't be listed is itself a thing to explain."""
    from tpudash.commands.facts import Facts, read_facts
    from tpudash.domain.node import NodeListing
    from tpudash.errors import TpudashError
    from tpudash.store.snapshot import NODES, REQUESTS, RUNS

    try:
        return await read_facts(session, runs=True, live_prices=True)
    except TpudashError as error:
        project, now = session.cloud.project, session.clock.now()
        facts = Facts(project, now, NodeListing(()), session.prices)
        for source in (NODES, REQUESTS, RUNS):
            facts.failed(source, error)
        return facts


def _items(findings: Iterable[Finding], now: datetime) -> list[Item]:
    from tpudash.commands.items import age_s, finding_item

    return [{**finding_item(row), "age_s": age_s(row.as_of, now)} for row in findings]


def _evidence(
    session: Session, facts: Facts, store: Store, name: str | None, book: ProbeBook
) -> Evidence:
    from tpudash.diagnostics.evidence import gather

    return gather(
        store,
        facts.prices,
        session.clock.now(),
        subject=name,
        probes=book.results,
        limits=session.settings.alarm_limits,
    )


async def _store_of(session: Session, facts: Facts) -> Store:
    """Return a store that knows what one look at everything tells."""
    from tpudash.domain.request import RequestListing
    from tpudash.store import changes
    from tpudash.store.snapshot import (
        LOGS,
        METRICS,
        NODES,
        PRICES,
        REQUESTS,
        RUNS,
        ConnectionInfo,
    )
    from tpudash.store.store import Store

    store = Store()
    cloud = session.cloud
    info = ConnectionInfo(
        cloud.project, session.settings.endpoint, cloud.account, cloud.is_emulator
    )
    store.apply(changes.Connected(info))
    if NODES not in facts.failures:
        store.apply(changes.NodesListed(facts.listing, facts.as_of))
    store.apply(changes.LivesRead(facts.lives))
    if REQUESTS not in facts.failures:
        listing = RequestListing(facts.requests, facts.listing.unreachable)
        store.apply(changes.RequestsListed(listing, facts.as_of))
    store.apply(changes.RunsRead(facts.runs, facts.as_of))
    await _read_log(session, facts, store)
    await _read_metrics(session, facts, store)
    await _read_endpoints(session, store)
    for source in (NODES, REQUESTS, RUNS, LOGS, METRICS, PRICES):
        _report(store, facts, source)
    return store


async def _read_log(session: Session, facts: Facts, store: Store) -> None:
    from tpudash.errors import TpudashError
    from tpudash.gateways.log_filters import all_of, since_filter
    from tpudash.pollers.log_tail import WORKERS_FILTER
    from tpudash.store.changes import LogsArrived
    from tpudash.store.snapshot import LOGS

    start = session.clock.now() - LOG_SPAN
    try:
        entries = await session.cloud.logging.list_entries(
            all_of(WORKERS_FILTER, since_filter(start)), newest_first=True, limit=MOST_ENTRIES
        )
    except TpudashError as error:
        facts.failed(LOGS, error)
    else:
        store.apply(LogsArrived(entries))


async def _read_endpoints(session: Session, store: Store) -> None:
    """Scrape the Prometheus endpoints of the settings twice, since a rate takes two."""
    serving = session.settings.serving
    store.serving.limits = serving.limits
    if not serving.endpoints:
        return
    from random import Random

    from tpudash.gateways.prometheus import PrometheusGateway
    from tpudash.pollers.serving import ServingSource
    from tpudash.pollers.source import Reporter

    random = Random()  # noqa: S311 - spreads questions in time, guards nothing
    scraper = PrometheusGateway(session.clock.now)
    source = ServingSource(serving.endpoints, scraper, store, session.clock, random)
    await source.poll(None)
    await session.clock.sleep(_BETWEEN_SCRAPES_S)
    await source.poll(None)
    Reporter(store, session.clock, source.name).answered(0.0)


async def _read_metrics(session: Session, facts: Facts, store: Store) -> None:
    """Read what says how busy the chips are."""
    from tpudash.errors import NotFoundError, TpudashError
    from tpudash.pollers.metrics import metric_period
    from tpudash.store.changes import SeriesRead
    from tpudash.store.instances import InstanceBook
    from tpudash.store.snapshot import METRICS
    from tpudash.store.utilization import METRICS as METRICS_OF_NODES
    from tpudash.store.utilization import Measure

    if not any(node.is_billing for node in facts.listing.nodes):
        return
    end = session.clock.now()
    period = metric_period(session.settings.intervals.metrics)
    instances = InstanceBook()
    instances.take(store.logs.newest(MOST_ENTRIES))
    for measure in (Measure.DUTY_CYCLE, Measure.TENSORCORE):
        kind = METRICS_OF_NODES[measure].metric_type
        try:
            series = await session.cloud.monitoring.list_series(
                kind, start=end - METRICS_SPAN, end=end, period=period
            )
        except NotFoundError:
            continue
        except TpudashError as error:
            facts.failed(METRICS, error)
            return
        store.apply(SeriesRead(instances.joined(series), end))


def _report(store: Store, facts: Facts, source: str) -> None:
    """Tell the store how a source did."""
    from tpudash.store.changes import SourceReported
    from tpudash.store.snapshot import SourceState, SourceStatus

    error, as_of = facts.failures.get(source), facts.as_of
    if error is None:
        status = SourceStatus(source, SourceState.OK, as_of, as_of)
    else:
        status = SourceStatus(
            source, SourceState.FAILING, None, as_of, error.title, error.detail, error.hint
        )
    store.apply(SourceReported(status))
