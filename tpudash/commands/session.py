"""One connection for one command: settings, gateways, prices, and how to name the source."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.commands.own_log import start_own_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tpudash.clock import Clock
    from tpudash.commands.state import CliState
    from tpudash.config.settings import Settings
    from tpudash.cost.prices import PriceBook
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.connection import Connection
    from tpudash.gateways.protocols import Cloud
    from tpudash.pollers.run_reader import RunReader


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with.

    Attributes:
        prices: The bundled prices; a command that needs live ones reads them itself.
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

        return KnownRuns(self.state.paths.journal_file).specs(self.cloud.project)

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


def make_connection(settings: Settings, *, read_only: bool) -> Connection:
    """Return a new connection; a read-only one lets no call out that could change something."""
    from tpudash.gateways.connection import Connection, ConnectionOptions

    return Connection(
        ConnectionOptions(
            project=settings.project,
            endpoint=settings.endpoint,
            quota_project=settings.quota_project,
            impersonate=settings.impersonate,
            read_only=read_only,
        )
    )


@asynccontextmanager
async def open_session(state: CliState, *, read_only: bool = True) -> AsyncIterator[Session]:
    """Connect for the length of one command.

    Raises:
        TpudashError: The settings are wrong, nobody is signed in, or the endpoint is silent.
    """
    from tpudash.clock import SystemClock
    from tpudash.cost.prices import PriceBook
    from tpudash.pollers.run_reader import RunReader

    prepare(state)
    connection = make_connection(state.settings, read_only=read_only)
    try:
        cloud = await connection.cloud()
        clock = SystemClock()
        reader = RunReader(cloud.bucket, clock)
        yield Session(state, connection, cloud, clock, PriceBook.bundled(), reader)
    finally:
        await connection.close()
