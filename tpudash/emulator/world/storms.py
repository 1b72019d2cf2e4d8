"""Preemption storms: lives of spot and preemptible nodes, drawn from a seed.

A node's life is drawn from the rule's seed, the node's name and how often it has come up, so that
the same launches end at the same moments whatever else happens.
"""

from __future__ import annotations

import fnmatch
import random
from typing import TYPE_CHECKING

from tpudash.emulator.errors import ApiError
from tpudash.emulator.fault_rules import FaultKind
from tpudash.emulator.messages import NodeState

if TYPE_CHECKING:
    from tpudash.emulator.fault_rules import Fault
    from tpudash.emulator.world.events import HostEvents
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import Deps

_HOUR_S = 3600.0


class PreemptionStorms:
    """Takes nodes back while a rule wants it."""

    def __init__(self, deps: Deps, events: HostEvents) -> None:
        self._deps = deps
        self._events = events
        self._doomed: set[tuple[int, str, int]] = set()
        """Lives that already have an end, by (rule, node, life)."""

        self._lives: dict[tuple[int, str], int] = {}
        deps.nodes.listeners.append(self._node_changed)
        deps.faults.listeners.append(self._rules_changed)

    def _rules_changed(self) -> None:
        rules = {rule.id for rule in self._deps.faults.rules}
        self._doomed = {life for life in self._doomed if life[0] in rules}
        self._lives = {key: count for key, count in self._lives.items() if key[0] in rules}
        for record in self._deps.nodes:
            self._node_changed(record)

    def _node_changed(self, record: NodeRecord) -> None:
        if record.state != NodeState.READY or not record.preemptible:
            return
        for rule in self._deps.faults.rules:
            if rule.kind is FaultKind.PREEMPTION_STORM and _concerns(rule, record):
                self._doom(rule, record)

    def _doom(self, rule: Fault, record: NodeRecord) -> None:
        name = str(record.name)
        life = (rule.id, name, record.life)
        if life in self._doomed:
            return
        self._doomed.add(life)
        count = self._lives[rule.id, name] = self._lives.get((rule.id, name), 0) + 1
        chance = random.Random(f"{rule.seed}/{name}/{count}")  # noqa: S311  (repeatable)
        lives_s = chance.expovariate(rule.rate_per_hour / _HOUR_S)
        self._deps.tasks.start(self._take_back(rule, record, lives_s), f"storm over {name}")

    async def _take_back(self, rule: Fault, record: NodeRecord, lives_s: float) -> None:
        faults, clock = self._deps.faults, self._deps.clock
        life = record.life
        await clock.sleep(lives_s)
        while rule in faults.rules and not rule.is_due(clock.monotonic()):
            await faults.wait_for_change()
        if rule not in faults.rules or record.life != life or not self._deps.nodes.holds(record):
            return
        if rule.remaining is not None:
            rule.remaining -= 1
            if rule.remaining <= 0:
                faults.clear(rule.id)
        try:
            await self._events.preempt(record, rule.notice_s)
        except ApiError:
            return  # it changed its state meanwhile: no longer there to be taken


def _concerns(rule: Fault, record: NodeRecord) -> bool:
    kinds = (record.accelerator.name, record.accelerator.generation)
    return fnmatch.fnmatchcase(record.name.zone, rule.zone) and any(
        fnmatch.fnmatchcase(kind, rule.accelerator_type) for kind in kinds
    )
