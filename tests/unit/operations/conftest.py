"""An operations room over a cloud in memory, and the agent's part of the play."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operations.fake_cloud import (
    BUCKET,
    PROJECT,
    STOCKOUT_TEXT,
    ZONE,
    FakeClock,
    FakeConnection,
    FakeWorld,
)
from tpudash.domain.failure import CloudStatus, ErrorClass, Failure, RetryPolicy
from tpudash.domain.operation import LaunchRequest, OperationProgress, Plan
from tpudash.domain.resource_name import node_name
from tpudash.domain.run import Run, RunSpec, decode_spec
from tpudash.operations.bundle import make_bundle
from tpudash.operations.journal import Journal
from tpudash.operations.service import Operations, OperationsOptions

if TYPE_CHECKING:
    from pathlib import Path

BUNDLE = cache(make_bundle)
RUN_URL = f"{BUCKET}/tpudash/runs/demo"


def classify(status: CloudStatus) -> Failure:
    """Name the two causes that the cloud in memory gives."""
    if status.message == STOCKOUT_TEXT:
        return Failure(ErrorClass.STOCKOUT, status.message, "", RetryPolicy.NEXT_ZONE)
    return Failure(ErrorClass.UNCLASSIFIED, status.message, "", RetryPolicy.NEVER)


@dataclass
class Room:
    """One state directory, one cloud, and as many sessions as a test wants to begin."""

    folder: Path
    owner: str = "alice"
    clock: FakeClock = field(default_factory=FakeClock)
    reports: list[OperationProgress] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = FakeWorld(self.clock)
        self.operations = self.session()

    def session(self, owner: str | None = None, folder: Path | None = None) -> Operations:
        """Begin another session, as a process that starts anew does."""
        self.journal = Journal(folder or self.folder, self.clock)
        self.operations = Operations(
            FakeConnection(self.world),
            self.journal,
            rate=lambda kind, zone, scheduling: 1.35,
            report=self.reports.append,
            owner=owner or self.owner,
            options=OperationsOptions(
                buckets=(BUCKET,),
                clock=self.clock,
                random=Random(1),
                classify=classify,
                make_bundle=BUNDLE,
            ),
        )
        return self.operations

    async def carried_out(self, plan: Plan) -> OperationProgress:
        """Carry a plan out to its end, without waiting for the trainer."""
        return await self.ended(self.operations.start(plan).operation_id)

    async def ended(self, operation_id: str) -> OperationProgress:
        """Return the last progress of an operation that was started or followed."""
        await self.operations._tasks[operation_id]
        return self.operations._progress[operation_id]

    async def launch(self, **changes: Any) -> OperationProgress:
        """Launch the run `demo`."""
        return await self.carried_out(await self.operations.plan_launch(wish(**changes)))

    async def resume(self, run: str = "demo") -> OperationProgress:
        return await self.carried_out(await self.operations.plan_resume(run))

    async def delete(self, *targets: str) -> OperationProgress:
        return await self.carried_out(await self.operations.plan_delete(targets or ("demo",)))

    async def run(self, name: str = "demo") -> Run:
        """Return the run as it stands."""
        survey = await self.operations._desk.survey(only=name)
        (found,) = survey.runs
        return found

    def agent_writes(self, attempt: int, state: str = "TRAINING", **changes: Any) -> None:
        """Write an attempt's record as its agent does."""
        now = self.clock.now().isoformat()
        record = {
            "schema": 1, "run": "demo", "attempt": attempt, "node": f"demo-{attempt}",
            "zone": ZONE, "state": state, "started": now, "updated": now, "step": 340,
            "checkpoint_step": 300, "target_step": 600, "restored_step": 0, **changes,
        }  # fmt: skip
        self.world.files[f"{RUN_URL}/attempts/{attempt}.json"] = json.dumps(record).encode()

    def saves(self, step: int) -> None:
        """Put a complete checkpoint into the bucket."""
        for ending in ("index", "data-00000-of-00001"):
            self.world.files[f"{RUN_URL}/checkpoints/ckpt-{step}.{ending}"] = b"x"

    def spec(self) -> RunSpec:
        """Return what `run.json` holds."""
        return decode_spec(self.world.files[f"{RUN_URL}/run.json"])


def node(node_id: str, zone: str = ZONE) -> str:
    """Return the full name of a node."""
    return node_name(PROJECT, zone, node_id)


def wish(**changes: Any) -> LaunchRequest:
    """Return a request that nothing is wrong with."""
    usual: dict[str, Any] = {
        "run": "demo",
        "accelerator_type": "v2-8",
        "zones": (ZONE,),
        "bucket": BUCKET,
        "steps": 600,
        "checkpoint_every_steps": 100,
        "seed": 7,
    }
    return LaunchRequest(**{**usual, **changes})


@pytest.fixture(autouse=True)
def _without_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes end in these tests and machines do not, so that nothing needs the disk itself."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A fresh cloud and a fresh state directory."""
    return Room(tmp_path / "state")
