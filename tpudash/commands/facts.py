"""What a reading command reads in one go: nodes, and where they are wanted runs and live prices.

A part that can't be read is an error in the answer and takes nothing else with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from tpudash.commands.items import node_item, run_item
from tpudash.commands.output import Item, SourceError
from tpudash.commands.session import price_cache
from tpudash.cost.audit import with_audit
from tpudash.cost.estimate import combine
from tpudash.cost.lives import lives_of
from tpudash.errors import NotFoundError, TpudashError
from tpudash.pollers.announcements import Announcements
from tpudash.pollers.history import audit_entries
from tpudash.store.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import datetime

    from tpudash.commands.session import Session
    from tpudash.cost.lives import Life
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.life import NodeLife
    from tpudash.domain.node import Node, NodeListing
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.request import QueuedResource, RequestListing
    from tpudash.domain.run import Run

AnswerT = TypeVar("AnswerT")


@dataclass
class Facts:
    """Nodes and runs as they were at one moment, and what could not be read of them."""

    project: str
    as_of: datetime
    listing: NodeListing
    prices: PriceBook
    runs: tuple[Run, ...] = ()
    requests: tuple[QueuedResource, ...] = ()
    lives: tuple[NodeLife, ...] = ()
    errors: list[SourceError] = field(default_factory=list)
    failures: dict[str, TpudashError] = field(default_factory=dict)

    def failed(self, source: str, error: TpudashError) -> None:
        """Note that a part could not be read."""
        self.errors.append(SourceError.of(source, error))
        self.failures[source] = error

    def raise_for(self, source: str) -> None:
        """Raise what kept a part from being read, for a command that is about that part."""
        if source in self.failures:
            raise self.failures[source]

    def node_items(self) -> list[Item]:
        """Return every node with its cost."""
        return [node_item(node, self.node_cost(node), self.as_of) for node in self.listing.nodes]

    def run_items(self) -> list[Item]:
        """Return every run with its cost."""
        return [run_item(run, self.run_cost(run), self.as_of) for run in self.runs]

    @cached_property
    def snapshot(self) -> Snapshot:
        """The same facts as a screen has them."""
        return Snapshot(
            nodes={node.name: node for node in self.listing.nodes},
            runs={run.name: run for run in self.runs},
            requests={request.name: request for request in self.requests},
            lives=self.lives,
            unreachable=dict.fromkeys(self.listing.unreachable, self.as_of),
        )

    @cached_property
    def all_lives(self) -> tuple[Life, ...]:
        """Every life of a node that is known, each once, with its price."""
        return lives_of(self.snapshot, self.prices, self.as_of)

    def node_cost(self, node: Node) -> CostEstimate:
        """Return what a node costs; what was watched or written says when it was READY."""
        own = (life for life in self.all_lives if life.is_listed and life.name == node.name)
        return next(own).estimate

    def run_cost(self, run: Run) -> CostEstimate:
        """Return what a run costs over all its attempts."""
        return combine(life.estimate for life in self.all_lives if life.run == run.name)

    def total_cost(self) -> CostEstimate:
        """Return what everything costs, each life of a node counted once."""
        return combine(life.estimate for life in self.all_lives)


async def read_facts(
    session: Session,
    *,
    runs: bool = False,
    only: str | None = None,
    live_prices: bool = False,
    maintenance: bool = False,
    audit: bool = False,
) -> Facts:
    """Read nodes, and what else is asked for.

    Args:
        session: Where to read.
        runs: Whether to read runs too.
        only: The name of the only runs that are wanted.
        live_prices: Whether to read the catalogue's prices too.
        maintenance: Whether to ask for announced maintenance too.
        audit: Whether to ask the audit log since when nodes are READY that nobody watched then.

    Raises:
        TpudashError: The nodes could not be listed.
    """
    as_of = session.clock.now()
    announcements = Announcements(session.clock)
    listing, _, requests, prices = await asyncio.gather(
        session.cloud.tpu.list_nodes(),
        announcements.refresh(session.cloud) if maintenance else _nothing(),
        _or_error(session.cloud.tpu.list_requests()) if runs else _nothing(),
        _or_error(session.cloud.billing.list_tpu_prices()) if live_prices else _nothing(),
    )
    listing = announcements.laid_over(listing)
    facts = Facts(session.cloud.project, as_of, listing, session.prices)
    facts.errors += SourceError.of_refusals(listing.refusals)
    if isinstance(prices, TpudashError):
        facts.failed("prices", prices)
    elif prices is not None:
        kept = await asyncio.to_thread(price_cache(session.state).take, prices, as_of)
        facts.prices = session.prices.with_catalog(kept)
    if isinstance(requests, TpudashError):
        facts.failed("requests", requests)
        requests = None
    elif requests is not None:
        facts.requests = requests.requests
    facts.lives = await _remembered(session, facts, audit=audit)
    if runs:
        await _read_runs(session, facts, requests, only)
    return facts


async def _remembered(session: Session, facts: Facts, *, audit: bool) -> tuple[NodeLife, ...]:
    """Write the listing down, and return what this machine remembers of the project's nodes."""
    history, listing = session.history, facts.listing

    def keep() -> tuple[NodeLife, ...]:
        before = history.lives(facts.project)
        history.record(facts.project, listing.nodes, facts.as_of, listing.unreachable)
        return history.lives(facts.project) if before or audit else before

    try:
        lives = await asyncio.to_thread(keep)
    except TpudashError as error:
        facts.failed("history", error)
        return ()
    if not audit:
        return lives
    try:
        return with_audit(lives, await audit_entries(session.cloud, lives))
    except TpudashError as error:
        facts.failed("audit log", error)
        return lives


async def _nothing() -> None:
    return None


async def _or_error(asking: Awaitable[AnswerT]) -> AnswerT | TpudashError:
    """Return an answer, or what kept it away, so that other questions go on."""
    try:
        return await asking
    except TpudashError as error:
        return error


async def _read_runs(
    session: Session, facts: Facts, requests: RequestListing | None, only: str | None
) -> None:
    """Read the records of the runs that nodes, requests, the bucket or the journal tell of."""
    try:
        reading = await session.run_reader.read(
            facts.listing,
            requests,
            known=session.known_runs(),
            buckets=[session.settings.bucket] if session.settings.bucket else [],
            only=only,
        )
    except TpudashError as error:
        facts.failed("runs", error)
        return
    facts.runs = reading.runs
    facts.errors += [SourceError.of("runs", error) for error in reading.errors]


async def read_run(session: Session, name: str) -> Run:
    """Read one run.

    Raises:
        NotFoundError: No run has this name.
        TpudashError: What would tell could not be read.
    """
    facts = await read_facts(session, runs=True, only=name)
    run = next((run for run in facts.runs if run.name == name), None)
    if run is not None:
        return run
    facts.raise_for("runs")
    raise NotFoundError(f"there is no run {name!r} in project {facts.project}")
