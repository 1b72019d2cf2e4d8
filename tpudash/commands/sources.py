"""The pollers of a screen, put together; imported only when they begin, after the first frame."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tpudash.commands.session import journal_file, known_prices, node_history, price_cache
from tpudash.cost.estimate import project_totals
from tpudash.diagnostics.evidence import ACTIONS
from tpudash.domain.node import NodeListing
from tpudash.domain.request import RequestListing
from tpudash.pollers.checklist import ChecklistSource
from tpudash.pollers.history import HistorySource
from tpudash.pollers.known_runs import KnownRuns
from tpudash.pollers.memory import MemorySource
from tpudash.pollers.poller_set import PollerSet, Tools
from tpudash.pollers.prices import PricesSource
from tpudash.pollers.run_reader import RunReader
from tpudash.store.changes import AlarmChanged
from tpudash.store.history import History
from tpudash.store.history_collector import Collector
from tpudash.store.snapshot import NODES

if TYPE_CHECKING:
    from tpudash.commands.screen import ScreenParts
    from tpudash.cost.alarms import AlarmChange
    from tpudash.domain.run import Run
    from tpudash.gateways.protocols import BucketGateway, Cloud
    from tpudash.pollers.source import LocalSource, Source
    from tpudash.store.store import Store


class RunsOfScreen:
    """Reads runs by what the store knows of nodes and requests, and by this machine's journal."""

    def __init__(self, parts: ScreenParts) -> None:
        self._parts = parts
        self._known = KnownRuns(journal_file(parts.state))
        self._reader: tuple[BucketGateway, RunReader] | None = None

    async def __call__(self, cloud: Cloud, store: Store) -> tuple[Run, ...]:
        """Return all runs.

        Raises:
            TpudashError: Nodes are not known yet, or a bucket could not be searched.
        """
        snapshot = store.snapshot
        bucket = self._parts.state.settings.bucket
        reading = await self._reader_of(cloud.bucket).read(
            NodeListing(tuple(snapshot.nodes.values()), tuple(snapshot.unreachable)),
            RequestListing(tuple(snapshot.requests.values())),
            known=[
                spec
                for project in cloud.projects or (cloud.project,)
                for spec in self._known.specs(project)
            ],
            buckets=[bucket] if bucket else [],
            nodes_as_of=snapshot.sources[NODES].last_success,
        )
        if reading.errors and not reading.runs:
            raise reading.errors[0]
        return reading.runs

    def _reader_of(self, bucket: BucketGateway) -> RunReader:
        if self._reader is None or self._reader[0] is not bucket:
            self._reader = (bucket, RunReader(bucket, self._parts.clock))
        return self._reader[1]


def make_pollers(parts: ScreenParts) -> PollerSet:
    """Return the pollers of every source."""
    intervals = parts.state.settings.intervals
    random = Random()  # noqa: S311 - spreads questions in time, guards nothing
    tools = Tools(parts.store, parts.link, parts.clock, random)
    parts.take_prices(known_prices(parts.state))
    more: list[Source | LocalSource] = [
        PricesSource(
            parts.prices,
            intervals.prices,
            parts.take_prices,
            price_cache(parts.state),
            parts.clock,
        ),
        HistorySource(parts.store, node_history(parts.state)),
        _memory(parts),
        _checklist(parts),
        *_serving(parts, random),
    ]
    return PollerSet(tools, intervals, RunsOfScreen(parts), more)


def _serving(parts: ScreenParts, random: Random) -> list[Source | LocalSource]:
    """Return what watches the Prometheus endpoints of the settings, if there are any."""
    parts.store.serving.limits = parts.state.settings.serving.limits
    endpoints = parts.state.settings.serving.endpoints
    if not endpoints:
        return []
    from tpudash.gateways.prometheus import PrometheusGateway
    from tpudash.pollers.serving import ServingSource

    scraper = PrometheusGateway(parts.clock.now)
    return [ServingSource(endpoints, scraper, parts.store, parts.clock, random)]


def _checklist(parts: ScreenParts) -> ChecklistSource:
    """Return the checklist of this screen, which tells the store of alarms about money."""

    def tell(change: AlarmChange) -> None:
        parts.store.apply(AlarmChanged(change.alarm, change.is_on))

    checklist = ChecklistSource(
        parts.store,
        parts.clock,
        parts.state.settings.intervals.checklist,
        lambda: parts.prices,
        ACTIONS if parts.is_operator else frozenset(),
        limits=parts.state.settings.alarm_limits,
        journal=journal_file(parts.state),
    )
    checklist.on_alarm = tell
    return checklist


def _memory(parts: ScreenParts) -> MemorySource:
    """Return what keeps the history of this screen."""
    settings = parts.state.settings

    def costs() -> tuple[float | None, float | None]:
        totals = project_totals(parts.store.snapshot, parts.prices, parts.clock.now())
        return (totals.per_hour_usd, totals.accrued_usd)

    return MemorySource(
        parts.store,
        parts.clock,
        History(parts.state.paths.memory_file, settings.endpoint),
        Collector(parts.store, costs),
        settings.first_project,
    )
