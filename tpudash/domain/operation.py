"""Acts that change the cloud, as data: what was asked for, the plan, and its progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from tpudash.domain.node import Scheduling
from tpudash.domain.recipes import DEFAULT_RECIPE
from tpudash.domain.run import Placement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tpudash.domain.failure import Failure


class OperationKind(StrEnum):
    """What an operation does."""

    LAUNCH = "launch"
    RESUME = "resume"
    DELETE = "delete"
    SUPERVISE = "supervise"
    STAND_DOWN = "stand down"


class OperationState(StrEnum):
    """How far an operation got; UNKNOWN means that it may or may not have happened."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    INTERRUPTED = "INTERRUPTED"


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchRequest:
    """A run that its owner wants to have.

    Attributes:
        zones: Candidate zones in order of preference; at least one.
        runtime_version: None chooses one that fits the accelerator type.
        trainer_arguments: Further flags for the trainer, as they stand on its command line.
        validate_first: Whether each attempt begins with the trainer's tests of itself.
        max_cost_usd: The most that the run may cost, or None for no cap.
        placement: How its nodes are asked for: queue, network, service account, labels.
        recipe: Which of the bundled trainers to run: a key of `RECIPES`.
        serve: What to serve instead of training: a run of the bucket, or a folder or URL.
    """

    run: str
    accelerator_type: str
    zones: tuple[str, ...]
    bucket: str
    scheduling: Scheduling = Scheduling.SPOT
    runtime_version: str | None = None
    steps: int | None = None
    checkpoint_every_steps: int | None = None
    seed: int | None = None
    trainer_arguments: tuple[str, ...] = ()
    delete_node_when_done: bool = False
    validate_first: bool = False
    max_cost_usd: float | None = None
    placement: Placement = field(default_factory=Placement)
    recipe: str = DEFAULT_RECIPE
    serve: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumeChanges:
    """What is to be different from now on when a run is resumed; None leaves it as it was.

    Attributes:
        zones: Candidate zones in order of preference.
        queued: Whether nodes are asked for by queued resources.
        valid_until_s: For how many seconds a queued resource may wait.
    """

    zones: tuple[str, ...] = ()
    max_cost_usd: float | None = None
    queued: bool | None = None
    valid_until_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisionWish:
    """How a run is to be supervised.

    Attributes:
        max_attempts: How often it may be tried to make a node, successfully or not.
        max_cost_usd: The most that the whole run may cost, or None for no cap but the run's own.
        resume_stalled: Whether a run that stands still may lose its node and be resumed.
        changes: What is to be different when it is resumed.
    """

    max_attempts: int = 50
    max_cost_usd: float | None = None
    resume_stalled: bool = False
    changes: ResumeChanges = field(default_factory=ResumeChanges)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One call that would be made, exactly as it would be made.

    Attributes:
        call: Full method name, such as `google.cloud.tpu.v2.Tpu/CreateNode`, or a file action.
        target: The resource or URL that it concerns.
        request: The request as JSON-like data, without secrets.
    """

    call: str
    target: str
    request: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation would do, shown before anything is done.

    Attributes:
        title: One line, such as "Launch demo on v2-8 (spot) in us-central1-b".
        effects: What it means, a sentence each: what is created, deleted, kept, lost.
        warnings: What the user should know before saying yes.
        cost_per_hour_usd: Rate after the operation, or None if unknown.
        confirm_word: What has to be typed to confirm, or None where a yes is enough.
        nodes: Full names of the nodes that it creates or deletes.
        payload: What the operations room needs to carry it out; opaque to everyone else.
    """

    kind: OperationKind
    run: str | None
    title: str
    steps: tuple[PlanStep, ...]
    effects: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cost_per_hour_usd: float | None = None
    confirm_word: str | None = None
    nodes: tuple[str, ...] = ()
    payload: object = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OperationProgress:
    """How far one operation got.

    Attributes:
        operation_id: Our own id, under which the journal holds it.
        message: What it is doing or waiting for now, in a sentence.
        steps_done: How many of `steps_total` are finished.
        failure: Why it failed, classified, if it did.
        phase: What a supervisor does now, as one word, or "".
    """

    operation_id: str
    kind: OperationKind
    run: str | None
    state: OperationState
    message: str
    started: datetime
    updated: datetime
    steps_done: int = 0
    steps_total: int = 0
    nodes: tuple[str, ...] = ()
    failure: Failure | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True)
class LaunchChoices:
    """What fits together in one zone, as the API lists it."""

    zone: str
    accelerator_types: tuple[str, ...]
    runtime_versions: tuple[str, ...]


class OperationsPort(Protocol):
    """What a screen may ask of the operations room. Watch mode has none."""

    async def launch_choices(self, zone: str) -> LaunchChoices:
        """List the accelerator types and runtime versions that a zone offers."""
        ...

    async def plan_launch(self, request: LaunchRequest) -> Plan:
        """Check the request against the cloud and return the plan; changes nothing."""
        ...

    async def plan_resume(self, run: str) -> Plan:
        """Return the plan to continue a run on a new node; changes nothing."""
        ...

    async def plan_delete(self, targets: Sequence[str]) -> Plan:
        """Return the plan to delete what is named; changes nothing.

        Args:
            targets: Runs by name; nodes and queued resources by full name.
        """
        ...

    def start(self, plan: Plan) -> OperationProgress:
        """Carry out a confirmed plan in the background; progress goes to the store."""
        ...

    async def reconcile(self) -> None:
        """End what was left behind and has come to its end since."""
        ...

    def left_behind(self, project: str) -> Sequence[OperationProgress]:
        """Return what the journal holds as begun and not ended, and nobody here follows.

        What no living process works on is INTERRUPTED.
        """
        ...

    def follow(self, operation_id: str) -> OperationProgress:
        """Take up an operation that was left behind; progress goes to the store."""
        ...


class SupervisionPort(Protocol):
    """What a screen may ask where runs can be supervised: resumed whenever they are preempted."""

    def is_supervised(self, run: str) -> bool:
        """Whether a run is resumed by itself now."""
        ...

    async def plan_supervise(self, run: str, *, on: bool) -> Plan:
        """Return the plan to switch supervision of a run on or off; changes nothing."""
        ...


class EmulatorPort(Protocol):
    """What a screen may ask of the local emulator, where the endpoint is one."""

    async def preempt(self, node: str, notice_s: float) -> None:
        """Take a node away as Google would, with that many seconds of notice."""
        ...
