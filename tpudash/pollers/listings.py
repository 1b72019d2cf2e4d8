"""Nodes and queued resources: full listings of all zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.pollers.activity import Activity, Rhythm, activity_of
from tpudash.pollers.announcements import Announcements
from tpudash.store.changes import NodesListed, RequestsListed
from tpudash.store.snapshot import NODES, REQUESTS

if TYPE_CHECKING:
    from tpudash.clock import Clock
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

NODES_WHILE_CHANGING_S: Final = 2.0
REQUESTS_WHILE_CHANGING_S: Final = 4.0


class NodesSource:
    """All nodes, asked for every other second while one is on its way to another state."""

    name = NODES

    def __init__(self, store: Store, clock: Clock, interval_s: float) -> None:
        self._store = store
        self._clock = clock
        self._rhythm = Rhythm(clock, interval_s, NODES_WHILE_CHANGING_S)
        self._announcements = Announcements(clock)

    async def poll(self, cloud: Cloud) -> None:
        """List all nodes; their facts are as old as the question, not as the answer."""
        as_of, began = self._clock.now(), self._clock.monotonic()
        listing = await cloud.tpu.list_nodes()
        self._rhythm.took(self._clock.monotonic() - began)
        self._store.apply(NodesListed(self._announcements.laid_over(listing), as_of))
        if listing.nodes:
            await self._announcements.refresh(cloud)

    def interval_s(self) -> float:
        """Return seconds until the next listing."""
        return self._rhythm.interval_s(activity_of(self._store.snapshot))


class RequestsSource:
    """All queued resources."""

    name = REQUESTS

    def __init__(self, store: Store, clock: Clock, interval_s: float) -> None:
        self._store = store
        self._clock = clock
        self._rhythm = Rhythm(clock, interval_s, REQUESTS_WHILE_CHANGING_S)

    async def poll(self, cloud: Cloud) -> None:
        """List all queued resources."""
        as_of, began = self._clock.now(), self._clock.monotonic()
        listing = await cloud.tpu.list_requests()
        self._rhythm.took(self._clock.monotonic() - began)
        self._store.apply(RequestsListed(listing, as_of))

    def interval_s(self) -> float:
        """Return seconds until the next listing."""
        activity = activity_of(self._store.snapshot)
        if activity is Activity.CHANGING and not self._store.snapshot.requests:
            activity = Activity.STEADY
        return self._rhythm.interval_s(activity)
