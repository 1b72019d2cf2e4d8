"""What a reading command reads in one go: nodes, and where they are wanted runs and live prices.

A part that can't be read is an error in the answer and takes nothing else with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpudash.commands.items import node_item, run_item
from tpudash.commands.output import Item, SourceError
from tpudash.cost.estimate import combine, node_cost, run_cost
from tpudash.errors import TpudashError

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.commands.session import Session
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Node, NodeListing
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import AttemptRecord, Run


@dataclass
class Facts:
    """Nodes and runs as they were at one moment, and what could not be read of them."""

    project: str
    as_of: datetime
    listing: NodeListing
    prices: PriceBook
    runs: tuple[Run, ...] = ()
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

    def node_cost(self, node: Node) -> CostEstimate:
        """Return what a node costs; what the agent wrote says when it was READY."""
        return node_cost(node, None, self._attempt_of(node), self.prices, self.as_of)

    def run_cost(self, run: Run) -> CostEstimate:
        """Return what a run costs over all its attempts."""
        return run_cost(run, self.listing.nodes, {}, self.prices, self.as_of)

    def total_cost(self) -> CostEstimate:
        """Return what everything costs, each node counted once."""
        known = {run.name for run in self.runs}
        apart = [node for node in self.listing.nodes if node.run not in known]
        return combine(
            [
                *(self.run_cost(run) for run in self.runs),
                *(self.node_cost(node) for node in apart),
            ]
        )

    def _attempt_of(self, node: Node) -> AttemptRecord | None:
        run = next((run for run in self.runs if run.name == node.run), None)
        if run is None:
            return None
        return next((one for one in run.attempts if one.attempt == node.attempt), None)


async def read_facts(session: Session, *, runs: bool = False, live_prices: bool = False) -> Facts:
    """Read nodes, and if asked for runs and live prices.

    Raises:
        TpudashError: The nodes could not be listed.
    """
    as_of = session.clock.now()
    reading = asyncio.create_task(_live_prices(session)) if live_prices else None
    try:
        listing = await session.cloud.tpu.list_nodes()
        facts = Facts(session.cloud.project, as_of, listing, session.prices)
        if runs:
            await _read_runs(session, facts)
        if reading is not None:
            try:
                facts.prices = await reading
            except TpudashError as error:
                facts.failed("prices", error)
    finally:
        if reading is not None:
            reading.cancel()
    return facts


async def _read_runs(session: Session, facts: Facts) -> None:
    try:
        facts.runs = await read_runs(session, facts.listing)
    except TpudashError as error:
        facts.failed("runs", error)


async def _live_prices(session: Session) -> PriceBook:
    return session.prices.with_catalog(await session.cloud.billing.list_tpu_prices())
