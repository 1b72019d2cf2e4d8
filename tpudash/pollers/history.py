"""Keeps this machine's history of nodes, and tells the store what it remembers."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.cost.audit import AUDITED_METHODS, late_lives, with_audit
from tpudash.errors import TpudashError
from tpudash.gateways.log_filters import audit_filter
from tpudash.store.changes import LivesRead
from tpudash.store.snapshot import NODES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tpudash.cost.history import NodeHistory
    from tpudash.domain.life import NodeLife
    from tpudash.domain.log import LogEntry
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

HISTORY: Final = "history"
INTERVAL_S: Final = 30.0
LOOK_BACK: Final = timedelta(days=30)
"""How far back the audit log is asked; it keeps 400 days, and a long answer is a slow one."""
MOST_ENTRIES: Final = 1000


async def audit_entries(cloud: Cloud, lives: Sequence[NodeLife]) -> tuple[LogEntry, ...]:
    """Ask the audit log when nodes became READY that nobody watched then.

    Raises:
        TpudashError: It may not be read, or does not answer.
    """
    late = late_lives(lives)
    if not late:
        return ()
    newest = max(life.last_seen for life in late)
    oldest = min(life.create_time or life.spans[0].start for life in late)
    since = max(oldest, newest - LOOK_BACK)
    filter_ = audit_filter(AUDITED_METHODS, since)
    return await cloud.logging.list_entries(filter_, newest_first=True, limit=MOST_ENTRIES)


class HistorySource:
    """Writes each new listing of nodes down, and reads what earlier sessions wrote."""

    name = HISTORY

    def __init__(self, store: Store, history: NodeHistory) -> None:
        self._store = store
        self._history = history
        self._written: datetime | None = None
        self._is_read = False
        self._audit: tuple[LogEntry, ...] = ()
        self._asked: frozenset[str] = frozenset()

    async def poll(self, cloud: Cloud) -> None:
        """Write the newest listing, and read the history where it says something new.

        Raises:
            ConfigurationError: The file can't be used.
        """
        project = cloud.project
        if not self._is_read:
            # Before anything is written: what is there tells of the time before this session.
            await self._read(cloud)
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
            await self._read(cloud)

    async def _read(self, cloud: Cloud) -> None:
        lives = await asyncio.to_thread(self._history.lives, cloud.project)
        self._is_read = True
        self._store.apply(LivesRead(with_audit(lives, self._audit)))
        listed = [life for life in late_lives(lives) if life.gone is None]
        names = frozenset(life.name for life in listed)
        if names <= self._asked:
            return
        self._asked |= names
        try:
            self._audit = (*self._audit, *await audit_entries(cloud, listed))
        except TpudashError as error:
            logger.info("the audit log does not tell when nodes became READY: %s", error)
            return
        self._store.apply(LivesRead(with_audit(lives, self._audit)))

    def interval_s(self) -> float:
        """Return seconds until the next writing."""
        return INTERVAL_S
