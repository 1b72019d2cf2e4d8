"""One connection for one command: settings, gateways, prices, and how to name the source."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.commands.own_log import start_own_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tpudash.clock import Clock
    from tpudash.commands.state import CliState
    from tpudash.config.settings import Settings
    from tpudash.cost.history import NodeHistory
    from tpudash.cost.price_cache import PriceCache
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.connection import Connection
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.run_reader import RunReader


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with.

    Attributes:
        prices: Those that the catalogue last gave, over the bundled ones; a command that needs
            live ones reads them itself.
    """

    state: CliState
    connection: Connection
    cloud: Cloud
    clock: Clock
    prices: PriceBook
    run_reader: RunReader

    def known_runs(self) -> tuple[RunSpec, ...]:
        """Return the runs that were begun on this machine."""
        from tpudash.pollers.known_runs import KnownRuns

        known = KnownRuns(journal_file(self.state))
        projects = self.cloud.projects or (self.cloud.project,)
        return tuple(spec for project in projects for spec in known.specs(project))

    @property
    def history(self) -> NodeHistory:
        """When nodes were seen READY on this machine."""
        return node_history(self.state)

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.state.settings

    @property
    def source(self) -> str:
        """Where the facts come from, in words."""
        endpoint = self.settings.endpoint
        where = f"endpoint {endpoint}" if endpoint else "Google Cloud"
        if self.cloud.is_emulator:
            where = f"emulator {endpoint}"
        if len(self.cloud.projects) > 1:
            return f"{where}, projects {', '.join(self.cloud.projects)}"
        return f"{where}, project {self.cloud.project}"


def prepare(state: CliState) -> None:
    """Check what every connection needs, and set the process up for it; connects to nothing.

    Raises:
        ConfigurationError: The settings are wrong.
    """
    # gRPC's core writes to stderr by itself, which no screen survives.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    level = "DEBUG" if state.debug else state.settings.log_level
    start_own_log(state.paths.log_file, level)


def make_connection(settings: Settings, *, read_only: bool, is_watch: bool = False) -> Connection:
    """Return a new connection; a read-only one lets no call out that could change something.

    Watch mode may have a service account of its own to act as.
    """
    from tpudash.gateways.connection import Connection, ConnectionOptions

    return Connection(
        ConnectionOptions(
            project=settings.first_project,
            more_projects=settings.projects[1:],
            endpoint=settings.endpoint,
            quota_project=settings.quota_project,
            impersonate=(is_watch and settings.watch_impersonate) or settings.impersonate,
            read_only=read_only,
        )
    )


def journal_file(state: CliState) -> Path:
    """Return where it is kept what was begun here."""
    return state.paths.journal_file(is_local=state.settings.endpoint is not None)


def node_history(state: CliState) -> NodeHistory:
    """Return this machine's memory of when nodes were READY."""
    from tpudash.cost.history import NodeHistory

    return NodeHistory(state.paths.history_file, state.settings.endpoint)


def price_cache(state: CliState) -> PriceCache:
    """Return where the prices that were read are kept."""
    from tpudash.cost.price_cache import PriceCache

    return PriceCache(state.paths.prices_file(is_local=state.settings.endpoint is not None))


def known_prices(state: CliState) -> PriceBook:
    """Return the prices that are known without asking: bundled, and those last read."""
    from tpudash.cost.prices import PriceBook

    return PriceBook.bundled().with_catalog(price_cache(state).load())


@asynccontextmanager
async def open_session(state: CliState, *, read_only: bool = True) -> AsyncIterator[Session]:
    """Connect for the length of one command.

    Raises:
        TpudashError: The settings are wrong, nobody is signed in, or the endpoint is silent.
    """
    from tpudash.clock import SystemClock
    from tpudash.pollers.run_reader import RunReader

    prepare(state)
    connection = make_connection(state.settings, read_only=read_only)
    try:
        cloud = await connection.cloud()
        clock = SystemClock()
        reader = RunReader(cloud.bucket, clock)
        yield Session(state, connection, cloud, clock, known_prices(state), reader)
    finally:
        await connection.close()
