"""The checklist as a source: run over what the store knows, without asking anybody."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.checklist import run_checklist
from tpudash.diagnostics.evidence import gather
from tpudash.pollers.activity import is_changing
from tpudash.store.changes import FindingsMade
from tpudash.store.snapshot import CHECKLIST, NODES, SourceState

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock
    from tpudash.cost.prices import PriceBook
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

WHILE_CHANGING_S: Final = 4.0
FIRST_LOOK_S: Final = 0.2


class ChecklistSource:
    """Runs every check now and then.

    Args:
        prices: Returns the prices as they are known now.
        actions: Ids of the actions that the screen offers; none in watch mode.
    """

    name = CHECKLIST

    def __init__(
        self,
        store: Store,
        clock: Clock,
        interval_s: float,
        prices: Callable[[], PriceBook],
        actions: frozenset[str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._prices = prices
        self._actions = actions

    async def poll(self, cloud: Cloud) -> None:  # noqa: ARG002  (checks judge what is known)
        """Run the checks once the nodes were asked for; before that all is unknown anyway."""
        while self._store.snapshot.sources[NODES].state is SourceState.WAITING:
            await self._clock.sleep(FIRST_LOOK_S)
        evidence = gather(self._store, self._prices(), self._clock.now(), actions=self._actions)
        # Evidence is frozen, and with many nodes judging it takes longer than a key may wait.
        findings = await asyncio.to_thread(run_checklist, evidence)
        self._store.apply(FindingsMade(findings))

    def interval_s(self) -> float:
        """Return seconds until the next run."""
        if is_changing(self._store.snapshot):
            return min(WHILE_CHANGING_S, self._interval_s)
        return self._interval_s
