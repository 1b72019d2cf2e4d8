"""The one connection that all sources share: made when first needed, made anew after a loss."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from tpudash.errors import TpudashError, UnreachableError
from tpudash.store.changes import Connected
from tpudash.store.snapshot import ConnectionInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

LOST_AFTER_FAILURES: Final = 4
"""Failures in a row, over all sources, after which a connection is no longer trusted."""
REFUSAL_HOLDS_S: Final = 0.8


class Connector(Protocol):
    """What makes the gateways, and gives them up again."""

    async def cloud(self) -> Cloud:
        """Return all gateways."""
        ...

    async def close(self) -> None:
        """Close every channel."""
        ...


class Link:
    """Holds the connection of this session and tells the store what it is connected to.

    Args:
        connect: Makes a new, unused connector.
        endpoint: `HOST:PORT` of a local endpoint, for the label on the screen.
    """

    def __init__(
        self,
        store: Store,
        connect: Callable[[], Connector],
        endpoint: str | None,
        clock: Clock,
    ) -> None:
        self._store = store
        self._connect = connect
        self._endpoint = endpoint
        self._clock = clock
        self._connector: Connector | None = None
        self._cloud: Cloud | None = None
        self._failures = 0
        self._refusal: tuple[float, TpudashError] | None = None
        self._lock = asyncio.Lock()

    @property
    def current(self) -> Cloud | None:
        """The gateways, if there is a connection now."""
        return self._cloud

    async def cloud(self) -> Cloud:
        """Return the gateways, connecting first where that has not happened yet.

        Raises:
            TpudashError: There is no connection to be had now; all who ask within a moment are
                told the same, so that they do not queue for one attempt after another.
        """
        async with self._lock:
            if self._cloud is None:
                self._repeat_refusal()
                try:
                    self._cloud = await self._made()
                except TpudashError as error:
                    self._refusal = (self._clock.monotonic(), error)
                    raise
                finally:
                    if self._cloud is None:
                        # Half-made connections are not kept: the next attempt starts from nothing.
                        await self.close()
                self._store.apply(Connected(self._info(self._cloud)))
            return self._cloud

    def _repeat_refusal(self) -> None:
        if self._refusal is not None:
            since, error = self._refusal
            if self._clock.monotonic() - since < REFUSAL_HOLDS_S:
                raise error

    async def _made(self) -> Cloud:
        self._connector = self._connect()
        return await self._connector.cloud()

    def _info(self, cloud: Cloud) -> ConnectionInfo:
        return ConnectionInfo(
            project=cloud.project,
            endpoint=self._endpoint,
            account=cloud.account,
            is_emulator=cloud.is_emulator,
            projects=tuple(cloud.projects),
        )

    def answered(self) -> None:
        """Note that a source got an answer."""
        self._failures = 0

    async def failed(self, error: Exception) -> None:
        """Note that a source failed; gives the connection up when it seems to be lost.

        A channel that has been dead for long is slow to try again. A permission that is missing
        is no reason: other sources may well be allowed to ask.
        """
        if self._cloud is None:
            return
        if not isinstance(error, UnreachableError):
            return
        self._failures += 1
        if self._failures >= LOST_AFTER_FAILURES:
            self._failures = 0
            await self.close()

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connector, self._connector, self._cloud = self._connector, None, None
        if connector is None:
            return
        try:
            await connector.close()
        except Exception:
            logger.warning("closing the connection failed", exc_info=True)
