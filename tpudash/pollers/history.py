"""Keeps this machine's history of nodes, and tells the store what it remembers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tpudash.store.changes import LivesRead
from tpudash.store.snapshot import NODES

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.cost.history import NodeHistory
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

HISTORY: Final = "history"
INTERVAL_S: Final = 30.0


class HistorySource:
    """Writes each new listing of nodes down, and reads what earlier sessions wrote."""

    name = HISTORY

    def __init__(self, store: Store, history: NodeHistory) -> None:
        self._store = store
        self._history = history
        self._written: datetime | None = None
        self._is_read = False

    async def poll(self, cloud: Cloud) -> None:
        """Write the newest listing, and read the history where it says something new.

        Raises:
            ConfigurationError: The file can't be used.
        """
        project = cloud.project
        if not self._is_read:
            # Before anything is written: what is there tells of the time before this session.
            await self._read(project)
        snapshot = self._store.snapshot
        status = snapshot.sources.get(NODES)
        as_of = status.last_success if status else None
        if as_of is None or as_of == self._written:
            return
        nodes, silent = tuple(snapshot.nodes.values()), tuple(snapshot.unreachable)
        seen = [node for node in nodes if node.zone not in snapshot.unreachable]
        has_changed = await asyncio.to_thread(self._history.record, project, seen, as_of, silent)
        self._written = as_of
        if has_changed:
            await self._read(project)

    async def _read(self, project: str) -> None:
        lives = await asyncio.to_thread(self._history.lives, project)
        self._is_read = True
        self._store.apply(LivesRead(lives))

    def interval_s(self) -> float:
        """Return seconds until the next writing."""
        return INTERVAL_S
