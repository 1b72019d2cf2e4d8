"""The attempt's record: what the run looks like from outside, kept in `attempts/<n>.json`."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainer.agent.cost_cap import CostCap, elapsed_since, parse_time
from trainer.agent.folders import FolderError
from trainer.events import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.agent.folders import RunFolder
    from trainer.agent.metadata import NodeIdentity
    from trainer.agent.spec import Spec

SCHEMA = 1
ENDED = ("FINISHED", "PREEMPTED", "FAILED")
_OF_THE_NODE = ("run", "attempt", "node", "zone", "project", "cost_per_hour_usd")


def record_name(attempt: int) -> str:
    """Return the name of an attempt's record within the run's folder."""
    return f"attempts/{attempt}.json"


@dataclass
class AttemptRecord:
    """One life of a run on one node; the fields are those of the file."""

    run: str
    attempt: int
    node: str
    zone: str
    project: str
    accelerator_type: str
    worker: int = 0
    state: str = "STARTING"
    stage: str | None = None
    started: str = field(default_factory=timestamp)
    updated: str = field(default_factory=timestamp)
    ended: str | None = None
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
    quarantined: list[str] = field(default_factory=list)
    log_entries_dropped: int = 0
    requested: str | None = None
    """When the node was asked for; it was created later than that."""
    cost_per_hour_usd: float | None = None
    cost_usd: float | None = None
    """What this attempt has cost, an estimate: rate times the time since `started`."""
    step_updated: str | None = None
    """When the trainer last moved on: a step, a checkpoint, an evaluation; not the agent."""
    workers: int | None = None
    workers_missing: list[int] = field(default_factory=list)
    """Workers of which no agent has shown itself."""
    checks: list[dict[str, Any]] = field(default_factory=list)
    """What the trainer's tests of itself found: check, verdict, message and hint of each."""

    @classmethod
    def begin(cls, spec: Spec, node: NodeIdentity) -> AttemptRecord:
        """Return the record of an attempt that begins now."""
        return cls(
            run=spec.run,
            attempt=spec.attempt,
            node=node.node,
            zone=node.zone,
            project=node.project,
            accelerator_type=node.accelerator_type,
            worker=node.worker,
            target_step=spec.target_step,
            requested=spec.requested,
            workers=node.workers,
            cost_per_hour_usd=spec.cost_per_hour_usd,
        )

    def encode(self) -> bytes:
        """Return the file's content."""
        body = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return (json.dumps(body, indent=1, allow_nan=False) + "\n").encode()


def read_json(folder: RunFolder, name: str, tell: Callable[[str], None]) -> dict[str, Any] | None:
    """Return a JSON object of the run's folder, or None if there is none.

    A file that is no JSON object is renamed and told, never overwritten.

    Raises:
        FolderError: the folder cannot be read.
    """
    content = folder.read(name)
    if content is None:
        return None
    try:
        loaded = json.loads(content)
        problem = "it is no JSON object"
    except ValueError as error:
        loaded, problem = None, str(error)
    if isinstance(loaded, dict):
        return loaded
    aside = folder.set_aside(name)
    tell(f"{name} is corrupt ({problem}); set aside as {aside}")
    return None


def continue_record(found: dict[str, Any], fresh: AttemptRecord) -> AttemptRecord:
    """Return the record of an earlier agent of the same attempt, where its values are usable."""
    record = dataclasses.replace(fresh)
    for each in dataclasses.fields(AttemptRecord):
        value = found.get(each.name)
        if each.name in _OF_THE_NODE or value is None:
            continue
        setattr(record, each.name, value)
    return record


class Recorder:
    """Writes the record from a thread of its own: a slow bucket never holds up a trainer.

    Without a folder (on workers other than 0) it only keeps the values.
    """

    def __init__(
        self, folder: RunFolder | None, record: AttemptRecord, tell: Callable[[str], None]
    ) -> None:
        self.record = record
        self._folder = folder
        self._tell = tell
        self._condition = threading.Condition()
        self._dirty = False
        self._urgent = False
        self._closing = False
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def update(self, *, urgent: bool = False, **changes: Any) -> None:
        """Change fields of the record; `urgent` writes at once instead of at the next interval."""
        with self._condition:
            for name, value in changes.items():
                setattr(self.record, name, value)
            self.record.updated = timestamp()
            self._dirty = True
            self._urgent = self._urgent or urgent
            self._condition.notify()

    def close(self, timeout_s: float) -> bool:
        """Write what is left. Returns whether that was done in time."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and not self._dirty

    def _work(self) -> None:
        written = 0.0
        while True:
            with self._condition:
                while not self._closing and not (self._dirty and self._is_due(written)):
                    self._condition.wait(0.2 if self._dirty else None)
                if self._closing and not self._dirty:
                    return
                self.record.cost_usd = self._cost()
                content = self.record.encode()
                self._dirty = self._urgent = False
            if not self._write(content):
                with self._condition:
                    self._dirty = True
                    if self._closing:
                        return
            written = time.monotonic()

    def _cost(self) -> float | None:
        """Return what the attempt has cost until now, or until it ended."""
        record = self.record
        if record.cost_per_hour_usd is None:
            return None
        end = parse_time(record.ended) if record.ended else None
        elapsed_s = elapsed_since(record.started, end)
        return round(CostCap(per_hour_usd=record.cost_per_hour_usd).cost_usd(elapsed_s) or 0.0, 6)

    def _is_due(self, written: float) -> bool:
        interval = self._folder.write_interval_s if self._folder is not None else 60.0
        return self._urgent or time.monotonic() - written >= interval

    def _write(self, content: bytes) -> bool:
        if self._folder is None:
            return True
        try:
            self._folder.write(record_name(self.record.attempt), content)
        except FolderError as error:
            if not self._failing:
                self._tell(f"the attempt record cannot be written: {error}")
            self._failing = True
            return False
        self._failing = False
        return True
