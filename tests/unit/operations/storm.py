"""A storm over the cloud in memory, drawn from a seed, and what must never happen in it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from tests.unit.operations.conftest import BUNDLE, RUN_URL, classify
from tests.unit.operations.fake_cloud import (
    BUCKET,
    OTHER_ZONE,
    ZONE,
    FakeConnection,
    FakeWorld,
    refusal,
)
from tests.unit.operations.virtual_time import VirtualClock
from tpudash.domain.failure import ErrorClass, RetryPolicy
from tpudash.domain.node import NodeState
from tpudash.domain.operation import OperationState
from tpudash.errors import OutcomeUnknownError, UnreachableError
from tpudash.operations.journal import Journal
from tpudash.operations.service import Operations, OperationsOptions

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.domain.node import Node
    from tpudash.domain.operation import OperationProgress, SupervisionWish

RATE_USD = 3.6
"""An hour; a tenth of a cent for each second."""

TARGET = 600


@dataclass
class Weather:
    """How bad it is. Probabilities are for each call."""

    silence: float = 0.0
    lost_call: float = 0.0
    lost_answer: float = 0.0
    late_node: float = 0.0
    refusal: float = 0.0
    crash: float = 0.0
    life_s: float = 600.0
    stockout_s: float = 0.0


@dataclass
class Storm:
    """One cloud, one run, one supervisor at a time.

    Attributes:
        cost_usd: What the READY nodes have really cost.
        wrongs: What happened that must never happen.
    """

    folder: Path
    weather: Weather
    random: Random
    cap_usd: float | None = None
    clock: VirtualClock = field(default_factory=VirtualClock)
    cost_usd: float = 0.0
    restarts: int = 0
    preemptions: int = 0
    wrongs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = FakeWorld(self.clock)  # type: ignore[arg-type]
        self.world.before, self.world.after = self.before, self.after
        self._steps: dict[str, int] = {}
        self._late: set[asyncio.Task[None]] = set()
        self._crash = asyncio.Event()
        self.is_calm = True

    def session(self) -> Operations:
        """Begin as a process that starts anew does."""
        self.operations = Operations(
            FakeConnection(self.world),
            Journal(self.folder, self.clock),
            rate=lambda kind, zone, scheduling: RATE_USD,
            report=lambda progress: None,
            owner="alice",
            options=OperationsOptions(
                buckets=(BUCKET,),
                clock=self.clock,
                random=self.random,
                classify=classify,
                make_bundle=BUNDLE,
            ),
        )
        # A thread would take time that is not this clock's.
        self.operations._bundle = BUNDLE()
        return self.operations

    def before(self, method: str, target: str) -> None:
        """Do to a call what the weather does before it arrives."""
        if method == "delete_node":
            self._check_delete(target)
        if self.is_calm:
            return
        weather, chance = self.weather, self.random.random
        if chance() < weather.crash:
            self._crash.set()
        if method in {"create_node", "create_request", "delete_node"}:
            if chance() < weather.refusal:
                kind = self.random.choice([ErrorClass.RATE_LIMIT, ErrorClass.INTERNAL])
                raise refusal(kind, f"{kind}", RetryPolicy.SAME_PLACE)
            if method == "create_node" and chance() < weather.late_node:
                task = asyncio.create_task(self._made_late(target, self.random.uniform(1, 60)))
                self._late.add(task)
                raise OutcomeUnknownError("the call was not answered")
            if chance() < weather.lost_call:
                raise OutcomeUnknownError("the call was lost")
        elif method not in {"write", "rename"} and chance() < weather.silence:
            raise UnreachableError("no answer")

    def after(self, method: str, target: str) -> None:
        """Lose the answer of a call that was carried out."""
        is_change = method in {"create_node", "create_request", "delete_node"}
        if is_change and not self.is_calm and self.random.random() < self.weather.lost_answer:
            raise OutcomeUnknownError("the answer was lost")

    async def _made_late(self, name: str, after_s: float) -> None:
        spec = json.loads(self.world.files[f"{RUN_URL}/run.json"])
        await self.clock.sleep(after_s)
        if name in self.world.nodes:
            return
        labels = {
            "tpudash-run": "demo", "tpudash-owner": "alice",
            "tpudash-attempt": name.rpartition("-")[2],
        }  # fmt: skip
        metadata = {"tpudash-spec": json.dumps(spec)}
        self.world.made(name, NodeState.CREATING, labels=labels, metadata=metadata)
        self.world.note_live()
        await self.clock.sleep(5.0)
        if name in self.world.nodes and self.world.nodes[name].state == NodeState.CREATING:
            self.world.set_state(name, NodeState.READY)

    def _check_delete(self, name: str) -> None:
        node = self.world.nodes.get(name)
        if node is None or node.is_dead or node.state == NodeState.DELETING:
            return
        has_word = self.cap_usd is not None and self.cost_usd >= self.cap_usd - RATE_USD * 0.05
        if not has_word:
            self.wrongs.append(f"{name} was deleted while {node.state}")

    async def pass_time(self) -> None:
        """Let agents work, nodes be taken away and capacity come and go, a second at a time."""
        taken: dict[str, float] = {}
        while True:
            await self.clock.sleep(1.0)
            now = self.clock.elapsed_s
            ready = [one for one in self.world.nodes.values() if one.state == NodeState.READY]
            if len(self.world.live("demo")) > 1:
                self.wrongs.append(f"two live nodes: {self.world.live('demo')}")
            for node in ready:
                self.cost_usd += RATE_USD / 3600
                key = f"{node.name} {node.create_time}"
                end = taken.setdefault(key, now + self.random.expovariate(1 / self.weather.life_s))
                self._work(node)
                if now >= end and not self.is_calm:
                    self.preemptions += 1
                    self.world.set_state(node.name, NodeState.PREEMPTED)
            if self.weather.stockout_s and not self.is_calm and now % 60 < 1:
                self._change_stock()

    def _change_stock(self) -> None:
        chance = self.weather.stockout_s / (self.weather.stockout_s + 120)
        zones = (ZONE, OTHER_ZONE)
        self.world.stocked_out = {zone for zone in zones if self.random.random() < chance}

    def _work(self, node: Node) -> None:
        """Train a step, and write what the agent writes."""
        attempt = node.attempt or 1
        step = self._steps["demo"] = self._steps.get("demo", 0) + 1
        now = self.clock.now().isoformat()
        record = {
            "schema": 1, "run": "demo", "attempt": attempt, "node": node.node_id,
            "zone": node.zone, "state": "TRAINING" if step < TARGET else "FINISHED",
            "started": (node.create_time or self.clock.now()).isoformat(), "updated": now,
            "step": step, "checkpoint_step": step // 100 * 100, "target_step": TARGET,
        }  # fmt: skip
        self.world.files[f"{RUN_URL}/attempts/{attempt}.json"] = json.dumps(record).encode()
        if step >= TARGET:
            result = {"schema": 1, "run": "demo", "attempt": attempt, "finished": now, "step": step}
            self.world.files[f"{RUN_URL}/result.json"] = json.dumps(result).encode()

    async def supervised(self, wish: SupervisionWish) -> OperationProgress:
        """Supervise to the end, begun again after each crash."""
        time = asyncio.create_task(self.pass_time())
        try:
            while True:
                progress = await self._one_life(wish)
                if progress is not None:
                    return progress
                self.restarts += 1
                await self.clock.sleep(self.random.uniform(0.0, 30.0))
        finally:
            for task in (time, *self._late):
                task.cancel()

    async def _one_life(self, wish: SupervisionWish) -> OperationProgress | None:
        operations = self.session()
        self._crash.clear()
        calm, self.is_calm = self.is_calm, True
        plan = await operations.plan_supervise("demo", wish)
        self.is_calm = calm
        begun = operations.start(plan)
        crash = asyncio.create_task(self._crash.wait())
        task = operations._tasks[begun.operation_id]
        await asyncio.wait({crash, task}, return_when=asyncio.FIRST_COMPLETED)
        crash.cancel()
        if not task.done():
            await operations.aclose()
            return None
        progress = operations._progress[begun.operation_id]
        return progress if progress.state is not OperationState.INTERRUPTED else None


def worst(seed: int) -> Weather:
    """Return a storm of everything, more or less of each."""
    random = Random(seed)

    def some(most: float) -> float:
        return random.choice((0.0, most / 3, most))

    return replace(
        Weather(),
        silence=some(0.06),
        lost_call=some(0.3),
        lost_answer=some(0.3),
        late_node=some(0.3),
        refusal=some(0.3),
        crash=some(0.003),
        life_s=random.choice((90.0, 300.0)),
        stockout_s=random.choice((0.0, 120.0, 240.0)),
    )
