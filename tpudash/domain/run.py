"""Training runs: a named job of one owner, its attempts (one for each node life), its checkpoints.

The records are JSON files in the run's bucket and a JSON value in the node's metadata; they are
what tpudash and the trainer's agent share. A reader refuses a `schema` that it does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

# msgspec resolves these annotations when it decodes, so they must exist at run time.
from datetime import datetime  # noqa: TC003

from tpudash.domain.node import Scheduling  # noqa: TC001
from tpudash.domain.recipes import SERVER

SCHEMA: Final = 1
RecordT = TypeVar("RecordT")
SILENT_SUPERVISOR_S: Final = 180.0
"""A supervisor that has not written for so long is taken for gone."""
RUN_NAME_PATTERN: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")


class RunState(StrEnum):
    """What a run is doing, as one word."""

    LAUNCHING = "LAUNCHING"
    WAITING = "WAITING"
    TRAINING = "TRAINING"
    SERVING = "SERVING"
    STALLED = "STALLED"
    PREEMPTED = "PREEMPTED"
    RESUMING = "RESUMING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    DELETED = "DELETED"


AT_WORK: Final = frozenset({RunState.TRAINING, RunState.SERVING})
"""States of a run that does what it is for."""


class AttemptState(StrEnum):
    """What the agent last wrote about its attempt."""

    STARTING = "STARTING"
    TRAINING = "TRAINING"
    SERVING = "SERVING"
    FINISHED = "FINISHED"
    PREEMPTED = "PREEMPTED"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """The trainer's code as an archive in the bucket, named by its content."""

    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to run on the workers, whatever the framework.

    Attributes:
        command: The command without its paths, which the agent appends.
        workers: `first` (worker 0 of a slice, as TensorFlow wants) or `all`.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    workers: str = "first"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How a node is asked for, beside what it is: through the queue or not, network, identity.

    Attributes:
        queued: Whether it is asked for by a queued resource, which waits for capacity.
        guaranteed: Whether the queued resource is of the guaranteed tier.
        valid_until_s: For how many seconds the queued resource may wait, or None for no end.
        reservation: A reservation, by its id or full name; only queued resources can name one.
        service_account: E-mail of the account that the node runs as; None is the project's own.
        labels: The user's own labels, beside those by which the run is known.
    """

    queued: bool = False
    guaranteed: bool = False
    valid_until_s: float | None = None
    reservation: str | None = None
    service_account: str | None = None
    network: str | None = None
    subnetwork: str | None = None
    tags: tuple[str, ...] = ()
    external_ips: bool = True
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A run as its owner asked for it: `run.json`, and `tpudash-spec` in the node's metadata.

    Attributes:
        attempt: The newest attempt that was begun, from 1.
        bucket: `gs://NAME`, or an absolute folder on this machine.
        run_url: `BUCKET/tpudash/runs/RUN`.
        validate_first: Whether each attempt begins with the trainer's tests of itself.
        max_cost_usd: The most that the run may cost, or None for no cap.
        cost_per_hour_usd: What the node of this attempt costs an hour, for the agent to hold the
            cap by; None where no price is known.
        attempt_started: When the newest attempt was begun, or None in older records.
        candidate_zones: Zones to try, in order of preference; empty means `zone` alone.
        placement: How its nodes are asked for.
        deleted: When its owner deleted its nodes, if that was the last thing done.
        failure: Why its node could not be made, if that was the last thing tried.
    """

    run: str
    owner: str
    attempt: int
    project: str
    zone: str
    bucket: str
    run_url: str
    recipe: Recipe
    accelerator_type: str
    runtime_version: str
    scheduling: Scheduling
    created: datetime
    bundle: Bundle | None = None
    target_step: int | None = None
    checkpoint_every_steps: int | None = None
    seed: int | None = None
    delete_node_when_done: bool = False
    validate_first: bool = False
    max_cost_usd: float | None = None
    cost_per_hour_usd: float | None = None
    attempt_started: datetime | None = None
    candidate_zones: tuple[str, ...] = ()
    placement: Placement = field(default_factory=Placement)
    deleted: datetime | None = None
    failure: dict[str, Any] | None = None
    schema: int = SCHEMA

    @property
    def node_id(self) -> str:
        """The id of the node that this attempt runs on."""
        return f"{self.run}-{self.attempt}"

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones to try, the one that was used last first."""
        return tuple(dict.fromkeys((self.zone, *self.candidate_zones)))

    def begun_again(self, attempt: int, started: datetime) -> RunSpec:
        """Return the spec of a later attempt, begun at `started`."""
        return replace(self, attempt=attempt, attempt_started=started, deleted=None, failure=None)


@dataclass(frozen=True, kw_only=True)
class AttemptRecord:
    """`attempts/<n>.json`: what the agent of worker 0 last knew of its attempt.

    Attributes:
        updated: When the agent wrote it; its age is the age of everything else in it.
        restored_step: The step that this attempt began from; 0 is from scratch.
        steps_lost: Last step seen of the life before, less `restored_step`.
        restarts: How often the trainer was started again on the same node.
        requested: When the node was asked for; it was created later than that.
        cost_usd: What the agent itself reckoned, by the rate in its spec.
        step_updated: When the trainer last moved on; `updated` moves with the agent alone.
        workers: How many workers the node has, where the agent tells.
        workers_missing: Workers of which no agent has shown itself.
        checks: What the trainer's tests of itself found, if it was made to test itself.
    """

    run: str
    attempt: int
    node: str
    state: str
    started: datetime
    updated: datetime
    zone: str = ""
    project: str = ""
    accelerator_type: str = ""
    worker: int = 0
    stage: str | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    restarts: int = 0
    restored_step: int | None = None
    steps_lost: int | None = None
    step: int | None = None
    checkpoint_step: int | None = None
    target_step: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    examples_per_second: float | None = None
    error: dict[str, Any] | None = None
    quarantined: tuple[str, ...] = ()
    log_entries_dropped: int = 0
    requested: datetime | None = None
    cost_per_hour_usd: float | None = None
    cost_usd: float | None = None
    step_updated: datetime | None = None
    workers: int | None = None
    workers_missing: tuple[int, ...] = ()
    checks: tuple[dict[str, Any], ...] = ()
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class Supervision:
    """`supervisor.json`: who resumes a run by itself, written by the supervisor every minute.

    Attributes:
        token: Tells this supervisor from any other; whoever finds another's token stands back.
        state: What it does now, as a word such as `WATCHING`, and in `message` as a sentence.
        tries: How often it has tried to make a node, out of `max_attempts`.
        spent_usd: What the run has cost by its reckoning, or None where no price is known.
        ended: When it was ended, or None while it goes on.
    """

    run: str
    owner: str
    host: str
    pid: int
    token: str
    since: datetime
    updated: datetime
    state: str = "WATCHING"
    message: str = ""
    tries: int = 0
    max_attempts: int = 0
    max_cost_usd: float | None = None
    spent_usd: float | None = None
    ended: datetime | None = None
    schema: int = SCHEMA

    @property
    def tries_left(self) -> int:
        """How often it may still try to make a node."""
        return max(0, self.max_attempts - self.tries)

    def is_alive(self, now: datetime) -> bool:
        """Whether it goes on, as far as its last sign of life tells."""
        return self.ended is None and (now - self.updated).total_seconds() < SILENT_SUPERVISOR_S


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """`result.json`: written once, when the run reached its target step."""

    run: str
    attempt: int
    finished: datetime
    step: int
    metrics: dict[str, Any] = field(default_factory=dict)
    export: str | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands, put together from its records, its nodes and its requests.

    Attributes:
        reason: One sentence: why it is in this state, and what can be done.
        steps_lost: Sum over all attempts of steps that had to be done again.
        last_heard: When the agent last wrote, or None.
        nodes: Full names of the nodes that carry its label now.
        step: Newest step seen anywhere, which may be after the last checkpoint.
        supervision: Who resumes it by itself, while somebody does.
    """

    name: str
    owner: str
    state: RunState
    spec: RunSpec | None = None
    reason: str = ""
    step: int | None = None
    target_step: int | None = None
    checkpoint_step: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    steps_lost: int | None = None
    nodes: tuple[str, ...] = ()
    result: RunResult | None = None
    last_heard: datetime | None = None
    loss: float | None = None
    accuracy: float | None = None
    examples_per_second: float | None = None
    supervision: Supervision | None = None

    @property
    def serves(self) -> bool:
        """Whether it serves a model instead of training one."""
        return self.spec is not None and self.spec.recipe.name == SERVER.name

    @property
    def final_metrics(self) -> Mapping[str, Any] | None:
        """The metrics of the finished run, or None."""
        return self.result.metrics if self.result else None

    @property
    def steps_at_risk(self) -> int | None:
        """Steps since the last checkpoint, which a preemption without notice would cost."""
        if self.step is None or self.state not in {RunState.TRAINING, RunState.STALLED}:
            return None
        return max(0, self.step - (self.checkpoint_step or 0))


def run_url_of(bucket: str, run: str) -> str:
    """Return the folder of a run in a bucket: `BUCKET/tpudash/runs/RUN`."""
    return f"{runs_url_of(bucket)}/{run}"


def runs_url_of(bucket: str) -> str:
    """Return the folder of all runs in a bucket."""
    return f"{bucket.rstrip('/')}/tpudash/runs"


class RecordError(ValueError):
    """A record is not what it should be; the text says which field and why."""


def decode_record(kind: type[RecordT], data: bytes | str) -> RecordT:
    """Decode one JSON record.

    Raises:
        RecordError: Not JSON, of the wrong shape, or of a schema newer than this version knows.
    """
    try:
        record = msgspec.json.decode(data, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(str(error)) from error
    schema = getattr(record, "schema", SCHEMA)
    if schema > SCHEMA:
        msg = f"schema {schema} is newer than this tpudash understands ({SCHEMA})"
        raise RecordError(msg)
    return record


def decode_spec(data: bytes | str) -> RunSpec:
    """Decode a run's spec, and see that it names the folder that its bucket and name give.

    A spec may come from a node that somebody else made; what it names is written to later.

    Raises:
        RecordError: Not a spec, or one whose folder lies elsewhere.
    """
    spec = decode_record(RunSpec, data)
    if not RUN_NAME_PATTERN.fullmatch(spec.run):
        msg = f"{spec.run!r} is not the name of a run"
        raise RecordError(msg)
    if spec.run_url != run_url_of(spec.bucket, spec.run):
        msg = f"run_url {spec.run_url!r} is not the folder of {spec.run!r} in {spec.bucket!r}"
        raise RecordError(msg)
    return spec


def encode_record(record: RunSpec | AttemptRecord | RunResult | Supervision) -> bytes:
    """Encode one record as JSON, indented, with times in RFC 3339."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2)
