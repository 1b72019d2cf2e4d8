"""The checklist as a source: run over what is known, whether or not anything answers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from tpudash.cost.alarms import AlarmBook
from tpudash.diagnostics.checklist import joined, probes_for, run_checklist
from tpudash.diagnostics.evidence import gather
from tpudash.pollers.activity import is_changing
from tpudash.pollers.probes import ProbeBook
from tpudash.store.changes import FindingsMade
from tpudash.store.snapshot import CHECKLIST, NODES, SourceState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tpudash.clock import Clock
    from tpudash.cost.alarms import AlarmChange
    from tpudash.cost.prices import PriceBook
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.alarm import AlarmLimits
    from tpudash.gateways.protocols import Cloud
    from tpudash.store.store import Store

logger = logging.getLogger(__name__)

WHILE_CHANGING_S: Final = 4.0
FIRST_LOOK_S: Final = 0.2


class ChecklistSource:
    """Runs every check now and then, and asks what they want to know beside the store.

    Args:
        prices: Returns the prices as they are known now.
        actions: Ids of the actions that the screen offers; none in watch mode.
        limits: From where on there is an alarm about money.
        journal: The file in which this machine's operations stand, or None where there is none.

    Attributes:
        on_alarm: Is called once when an alarm goes on, and once when it goes off.
    """

    name = CHECKLIST
    needs_cloud = False

    def __init__(
        self,
        store: Store,
        clock: Clock,
        interval_s: float,
        prices: Callable[[], PriceBook],
        actions: frozenset[str],
        *,
        limits: AlarmLimits | None = None,
        journal: Path | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._interval_s = interval_s
        self._prices = prices
        self._actions = actions
        self._limits = limits
        self.on_alarm: Callable[[AlarmChange], object] = lambda _: None
        self._probes = ProbeBook(clock, journal=journal)
        self._alarms = AlarmBook()

    async def poll(self, cloud: Cloud | None) -> None:
        """Run the checks once the nodes were asked for, and again after the probes."""
        while self._store.snapshot.sources[NODES].state is SourceState.WAITING:
            await self._clock.sleep(FIRST_LOOK_S)
        await self._run()
        if cloud is None:
            return
        wanted = await asyncio.to_thread(probes_for, self._evidence())
        due = self._probes.due(wanted)
        if due:
            await self._probes.ask(cloud, due)
            await self._run()

    def _evidence(self) -> Evidence:
        return gather(
            self._store,
            self._prices(),
            self._clock.now(),
            actions=self._actions,
            probes=self._probes.results,
            limits=self._limits,
        )

    async def _run(self) -> None:
        # Evidence is frozen, and with many nodes judging it takes longer than a key may wait.
        rows = await asyncio.to_thread(run_checklist, self._evidence(), join=False)
        for change in self._alarms.update(rows, self._clock.now()):
            logger.warning("alarm %s: %s", "on" if change.is_on else "off", change.text)
            self.on_alarm(change)
        self._store.apply(FindingsMade(joined(rows)))

    def interval_s(self) -> float:
        """Return seconds until the next run."""
        if is_changing(self._store.snapshot):
            return min(WHILE_CHANGING_S, self._interval_s)
        return self._interval_s
