"""Prometheus endpoints of the settings as a source; a fault of one stays with that one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from tpudash.domain.serving import Scrape, ServingFigures, ServingKind, figures_between
from tpudash.errors import TpudashError
from tpudash.pollers.back_off import back_off
from tpudash.store.changes import ServingRead
from tpudash.store.snapshot import ENDPOINTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tpudash.clock import Clock
    from tpudash.domain.serving import ServingEndpoint
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

INTERVAL_S: Final = 5.0


class Scraper(Protocol):
    """What reads an endpoint."""

    async def scrape(self, endpoint: ServingEndpoint) -> Scrape:
        """Return what it counts now, or raise a TpudashError."""
        ...


@dataclass(slots=True)
class _Target:
    endpoint: ServingEndpoint
    last: Scrape | None = None
    failures: int = 0
    due: float = 0.0


class ServingSource:
    """Scrapes each endpoint every few seconds, and ever less often while it does not answer."""

    name = ENDPOINTS
    needs_cloud = False

    def __init__(
        self,
        endpoints: Sequence[ServingEndpoint],
        scraper: Scraper,
        store: Store,
        clock: Clock,
        random: Random,
    ) -> None:
        self._targets = [_Target(endpoint) for endpoint in endpoints]
        self._scraper = scraper
        self._store = store
        self._clock = clock
        self._random = random

    async def poll(self, cloud: Cloud | None) -> None:  # noqa: ARG002 - the cloud has no part in it
        """Scrape those whose time has come, at once."""
        moment = self._clock.monotonic()
        due = [target for target in self._targets if target.due <= moment]
        figures = await asyncio.gather(*map(self._look, due))
        if figures:
            self._store.apply(ServingRead(tuple(figures)))

    async def _look(self, target: _Target) -> ServingFigures:
        name = target.endpoint.name
        try:
            scrape = await self._scraper.scrape(target.endpoint)
        except TpudashError as error:
            target.failures += 1
            target.due = self._clock.monotonic() + back_off(target.failures, self._random)
            words = f"{error.title} {error.detail}".strip()
            now = self._clock.now()
            return ServingFigures(ServingKind.ENDPOINT, name, now, is_ready=False, problem=words)
        before, target.last, target.failures = target.last, scrape, 0
        return figures_between(name, before, scrape)

    def interval_s(self) -> float:
        """Return seconds until the next look."""
        return INTERVAL_S
