"""Stores filled by hand, and fake ports that record what the screen asked of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tpudash.domain.control import Control, Holder
from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.node import Node, NodeListing, Scheduling, Worker
from tpudash.domain.operation import (
    LaunchChoices,
    LaunchRequest,
    OperationKind,
    OperationProgress,
    OperationState,
    Plan,
    PlanStep,
)
from tpudash.domain.request import QueuedResource, RequestListing
from tpudash.domain.run import AttemptRecord, Recipe, Run, RunSpec, RunState
from tpudash.domain.shell import ShellCommand
from tpudash.store.changes import (
    Connected,
    LogsArrived,
    NodesListed,
    OperationChanged,
    RequestsListed,
    RunsRead,
    SourceReported,
)
from tpudash.store.snapshot import ConnectionInfo, SourceState, SourceStatus
from tpudash.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
ZONE = "us-central1-b"


@dataclass
class FakeClock:
    """Time that stands still until a test moves it."""

    time: datetime = NOW
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        self.seconds += seconds


def node_name(node_id: str, zone: str = ZONE) -> str:
    return f"projects/demo/locations/{zone}/nodes/{node_id}"


def make_node(
    node_id: str = "demo-1", state: str = "READY", *, run: str | None = "demo", **more: Any
) -> Node:
    zone = more.pop("zone", ZONE)
    labels = dict(more.pop("labels", {}))
    if run is not None:
        attempt = node_id.rsplit("-", 1)[-1]
        labels |= {"tpudash-run": run, "tpudash-owner": "alice", "tpudash-attempt": attempt}
    fields: dict[str, Any] = {
        "health": "HEALTHY" if state == "READY" else None,
        "accelerator_type": "v2-8",
        "runtime_version": "tpu-vm-tf-2.18.0-pjrt",
        "scheduling": Scheduling.SPOT,
        "create_time": NOW - timedelta(hours=2),
        "workers": (Worker(0, "10.0.0.2", "203.0.113.7"),),
        "raw": {"name": node_name(node_id, zone), "state": state},
        **more,
    }
    return Node(name=node_name(node_id, zone), state=state, labels=labels, **fields)


def make_spec(run: str = "demo", **more: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "owner": "alice",
        "attempt": 1,
        "project": "demo",
        "zone": ZONE,
        "bucket": "/tmp/b",
        "run_url": f"/tmp/b/tpudash/runs/{run}",
        "recipe": Recipe(
            name="tensorflow-mnist",
            command=("python3", "-m", "trainer", "--steps", "600"),
            environment={"API_TOKEN": "abc123", "MODE": "fast"},
        ),
        "accelerator_type": "v2-8",
        "runtime_version": "tpu-vm-tf-2.18.0-pjrt",
        "scheduling": Scheduling.SPOT,
        "created": NOW - timedelta(hours=2),
        "target_step": 600,
        "checkpoint_every_steps": 100,
        **more,
    }
    return RunSpec(run=run, **fields)


def make_attempt(attempt: int = 1, *, run: str = "demo", **more: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "node": f"{run}-{attempt}",
        "state": "TRAINING",
        "started": NOW - timedelta(hours=1),
        "updated": NOW - timedelta(seconds=4),
        "zone": ZONE,
        "accelerator_type": "v2-8",
        "restored_step": 0,
        "step": 450,
        "checkpoint_step": 400,
        "target_step": 600,
        "loss": 0.21,
        "examples_per_second": 1834.0,
        **more,
    }
    return AttemptRecord(run=run, attempt=attempt, **fields)


def make_run(name: str = "demo", state: RunState = RunState.TRAINING, **more: Any) -> Run:
    fields: dict[str, Any] = {
        "owner": "alice",
        "spec": make_spec(name),
        "step": 450,
        "target_step": 600,
        "checkpoint_step": 400,
        "attempts": (make_attempt(run=name),),
        "nodes": (node_name(f"{name}-1"),),
        "last_heard": NOW - timedelta(seconds=4),
        "loss": 0.21,
        "accuracy": 0.94,
        "examples_per_second": 1834.0,
        **more,
    }
    return Run(name=name, state=state, **fields)


def make_request(request_id: str = "waiting", **more: Any) -> QueuedResource:
    fields: dict[str, Any] = {
        "state": "WAITING_FOR_RESOURCES",
        "create_time": NOW - timedelta(minutes=40),
        "accelerator_type": "v5litepod-16",
        "node_names": (node_name("waiting-1"),),
        **more,
    }
    return QueuedResource(
        name=f"projects/demo/locations/{ZONE}/queuedResources/{request_id}", **fields
    )


def list_nodes(store: Store, *nodes: Node, at: datetime = NOW, silent: Sequence[str] = ()) -> None:
    store.apply(NodesListed(NodeListing(nodes, tuple(silent)), at))


def list_requests(store: Store, *requests: QueuedResource) -> None:
    store.apply(RequestsListed(RequestListing(requests), NOW))


def read_runs(store: Store, *runs: Run) -> None:
    store.apply(RunsRead(runs, NOW))


def report_source(
    store: Store, name: str, state: SourceState = SourceState.OK, **more: Any
) -> None:
    fields: dict[str, Any] = {"last_success": NOW - timedelta(seconds=3), "interval_s": 12, **more}
    store.apply(SourceReported(SourceStatus(name, state, **fields)))


def connect(store: Store, *, is_emulator: bool = True) -> None:
    info = ConnectionInfo("demo", "127.0.0.1:9000", "alice@example.com", is_emulator)
    store.apply(Connected(info))


def make_entry(second: float, text: str, **more: Any) -> LogEntry:
    fields: dict[str, Any] = {"node_id": "demo-1", "run": "demo", "worker_id": "0", **more}
    moment = NOW + timedelta(seconds=second)
    return LogEntry(moment, Severity.INFO, text, insert_id=f"{second}", **fields)


def add_logs(store: Store, *entries: LogEntry) -> None:
    store.apply(LogsArrived(entries))


def make_progress(operation_id: str = "op-1", **more: Any) -> OperationProgress:
    fields: dict[str, Any] = {
        "kind": OperationKind.LAUNCH,
        "run": "demo",
        "state": OperationState.RUNNING,
        "message": "waiting until the node is READY",
        "started": NOW,
        "updated": NOW,
        "steps_done": 2,
        "steps_total": 4,
        **more,
    }
    return OperationProgress(operation_id=operation_id, **fields)


def report_progress(store: Store, progress: OperationProgress) -> None:
    store.apply(OperationChanged(progress))


def make_world() -> Store:
    """A store with one of everything that the nodes pane can show."""
    store = Store()
    connect(store)
    gone = make_node("old-1", run="old")
    list_nodes(
        store, gone, make_node("demo-1", state="CREATING"), at=NOW - timedelta(hours=1, minutes=2)
    )
    list_nodes(
        store,
        make_node("demo-1"),
        make_node("vision-1", "PREEMPTED", run="vision", accelerator_type="v3-8"),
        make_node(
            "stray", run=None, scheduling=Scheduling.ON_DEMAND, health="UNHEALTHY_TENSORFLOW"
        ),
        at=NOW - timedelta(hours=1),
    )
    list_requests(store, make_request())
    read_runs(
        store,
        make_run(),
        make_run(
            "vision",
            RunState.PREEMPTED,
            reason="Its spot node was preempted; R resumes it from step 300.",
            step=320,
            checkpoint_step=300,
            attempts=(
                make_attempt(
                    run="vision",
                    state="PREEMPTED",
                    ended=NOW - timedelta(minutes=5),
                    step=320,
                    checkpoint_step=300,
                ),
            ),
        ),
        make_run("old", RunState.FINISHED, step=600, checkpoint_step=600, attempts=()),
    )
    report_source(store, "nodes")
    add_logs(store, *(make_entry(at, f"step {at} loss 0.{90 - at}") for at in range(1, 30)))
    return store


@dataclass
class FakeOperations:
    """An operations room that records what it was asked, and does what the test says."""

    store: Store
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    plan_error: Exception | None = None
    start_error: Exception | None = None
    never_answers: bool = False
    left: tuple[OperationProgress, ...] = ()
    warnings: tuple[str, ...] = ("50 steps since the last checkpoint would be lost.",)
    choices: LaunchChoices = field(
        default_factory=lambda: LaunchChoices(
            ZONE, ("v2-8", "v3-8"), ("tpu-vm-base", "tpu-vm-tf-2.18.0-pjrt")
        )
    )

    async def launch_choices(self, zone: str) -> LaunchChoices:
        self.calls.append(("choices", zone))
        return self.choices

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        self.calls.append(("plan_launch", request))
        return await self._plan(OperationKind.LAUNCH, request.run, None)

    async def plan_resume(self, run: str) -> Plan:
        self.calls.append(("plan_resume", run))
        return await self._plan(OperationKind.RESUME, run, None)

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        self.calls.append(("plan_delete", tuple(targets)))
        return await self._plan(OperationKind.DELETE, targets[0], targets[0].rsplit("/", 1)[-1])

    async def _plan(self, kind: OperationKind, run: str, word: str | None) -> Plan:
        if self.never_answers:
            await asyncio.Event().wait()
        if self.plan_error is not None:
            raise self.plan_error
        step = PlanStep(
            "google.cloud.tpu.v2.Tpu/CreateNode",
            f"projects/demo/locations/{ZONE}",
            {"node_id": f"{run}-1", "node": {"accelerator_type": "v2-8"}},
        )
        return Plan(
            kind,
            run,
            f"{kind} {run}",
            (step,),
            effects=("One node is created.", "Checkpoints are kept."),
            warnings=self.warnings,
            cost_per_hour_usd=1.35,
            confirm_word=word,
            nodes=(node_name("demo-1"),),
        )

    async def reconcile(self) -> None:
        self.calls.append(("reconcile", None))

    def left_behind(self, project: str) -> Sequence[OperationProgress]:
        self.calls.append(("left_behind", project))
        return self.left

    def follow(self, operation_id: str) -> OperationProgress:
        self.calls.append(("follow", operation_id))
        return make_progress(operation_id)

    def start(self, plan: Plan) -> OperationProgress:
        self.calls.append(("start", plan.kind, plan.run))
        if self.start_error is not None:
            raise self.start_error
        progress = make_progress(kind=plan.kind, run=plan.run)
        report_progress(self.store, progress)
        return progress


@dataclass
class FakeEmulator:
    """Control of an emulator that records what it was told."""

    calls: list[tuple[str, float]] = field(default_factory=list)
    error: Exception | None = None

    async def preempt(self, node: str, notice_s: float) -> None:
        self.calls.append((node, notice_s))
        if self.error is not None:
            raise self.error


@dataclass
class FakeShell:
    """A way onto workers that records who asked for it."""

    calls: list[tuple[str, int]] = field(default_factory=list)
    error: Exception | None = None

    async def shell(self, node: Node, worker: int) -> ShellCommand:
        self.calls.append((node.node_id, worker))
        if self.error is not None:
            raise self.error
        return ShellCommand(("true",))


@dataclass
class FakeControl:
    """Control that goes where the test says."""

    control: Control = field(default_factory=lambda: Control(is_ours=True))
    calls: list[str] = field(default_factory=list)

    def check(self) -> Control:
        return self.control

    def take(self) -> Control:
        self.calls.append("take")
        self.control = Control(is_ours=True, holder=make_holder("alice"))
        return self.control

    def release(self) -> None:
        self.calls.append("release")


@dataclass
class FakeSupervision:
    """A supervisor that records what it was asked."""

    supervised: set[str] = field(default_factory=set)
    calls: list[tuple[str, bool]] = field(default_factory=list)

    def is_supervised(self, run: str) -> bool:
        return run in self.supervised

    async def plan_supervise(self, run: str, *, on: bool) -> Plan:
        self.calls.append((run, on))
        return Plan(OperationKind.SUPERVISE, run, f"Supervise {run}", ())


def make_holder(owner: str = "bob") -> Holder:
    return Holder(owner, "bastion", 4711, NOW - timedelta(hours=2), "pts/3")


async def no_background() -> None:
    """Feed nothing, for ever."""
    await asyncio.Event().wait()
