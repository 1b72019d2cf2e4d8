"""The journal: what was begun, how far it got, and how it ended. Intent is saved before acting.

A session that is cut off can be taken up from it, and no node is made that nobody knows of.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.domain.run import RecordError, RunSpec, decode_spec, encode_record
from tpudash.errors import ConfigurationError
from tpudash.operations.journal_compaction import needed
from tpudash.operations.journal_file import JournalFile
from tpudash.operations.payload import Payload, decode_payload, encode_payload
from tpudash.operations.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tpudash.clock import Clock

logger = logging.getLogger(__name__)

SCHEMA: Final = 1
FILE_NAME: Final = "operations.jsonl"
LOCAL_FILE_NAME: Final = "operations-local.jsonl"
"""That of local endpoints: what was begun there must never be gone on with in the cloud."""
_E_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")


@dataclass(frozen=True, slots=True)
class JournalledOperation:
    """One operation as the journal tells it.

    Attributes:
        payload: What it needs to be taken up again; None when its record is of another version.
        nodes: Full names of the nodes that it deletes or tried to create.
        accepted: The cloud's operation for each node that it was last accepted for, by full name.
        asked: When it last called for a change whose answer was not saved, or None.
        unanswered: Full name of the node that this call was to create, or None.
        tries: How often a supervisor tried to make a node.
    """

    operation_id: str
    kind: OperationKind
    project: str
    run: str | None
    title: str
    started: datetime
    updated: datetime
    state: OperationState = OperationState.RUNNING
    message: str = ""
    nodes: tuple[str, ...] = ()
    payload: Payload | None = None
    asked: datetime | None = None
    unanswered: str | None = None
    tries: int = 0
    accepted: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether its end is known."""
        return self.state in {OperationState.DONE, OperationState.FAILED}


class Journal:
    """The journal of one state directory, shared by all processes of the user.

    Args:
        folder: The state directory; it is made when something is written.
        is_local: Whether everything is done at a local endpoint.
    """

    def __init__(self, folder: Path, clock: Clock, *, is_local: bool = False) -> None:
        self._file = JournalFile(folder / (LOCAL_FILE_NAME if is_local else FILE_NAME))
        self._locks = folder / ("locks-local" if is_local else "locks")
        self._clock = clock
        self._found: dict[str, JournalledOperation] = {}
        self._taken_in = 0
        self._generation = -1

    @property
    def path(self) -> Path:
        """The journal's file."""
        return self._file.path

    @property
    def problem(self) -> str:
        """What is wrong with the file, or "" ."""
        return self._file.problem

    def prepare(self) -> None:
        """See that it can be written, and drop what nobody needs; raises `ConfigurationError`."""
        self._file.prepare(needed)

    def begin(self, operation: JournalledOperation) -> None:
        """Save what is about to be done."""
        payload = operation.payload
        self._append(
            "begin",
            operation.operation_id,
            {
                "kind": operation.kind,
                "project": operation.project,
                "run": operation.run,
                "title": operation.title,
                "nodes": list(operation.nodes),
                "payload": None if payload is None else encode_payload(payload),
            },
        )

    def intend(self, operation_id: str, what: str, **facts: Any) -> None:
        """Save one step before it is taken."""
        self._append("intend", operation_id, {"message": what, **facts})

    def note(self, operation_id: str, message: str, **facts: Any) -> None:
        """Save how far an operation got."""
        self._append("progress", operation_id, {"message": scrubbed(message), **facts})

    def note_spec(self, operation_id: str, spec: RunSpec) -> None:
        """Save the spec that is about to be written to the bucket."""
        self._append("spec", operation_id, {"spec": encode_record(spec).decode()})

    def end(self, operation_id: str, state: OperationState, message: str) -> None:
        """Save how an operation ended."""
        self._append("end", operation_id, {"state": state, "message": scrubbed(message)})

    def tried_to_end(self, operation_id: str, state: OperationState, message: str) -> bool:
        """Save how an operation ended, and say whether that could be done."""
        try:
            self.end(operation_id, state, message)
        except ConfigurationError as error:
            logger.warning("the end of %s could not be saved: %s", operation_id, error)
            return False
        return True

    def operations(self) -> tuple[JournalledOperation, ...]:
        """Return every operation, oldest first."""
        records = self._file.records()
        if self._file.generation != self._generation or len(records) < self._taken_in:
            self._found, self._taken_in = {}, 0
            self._generation = self._file.generation
        for record in records[self._taken_in :]:
            _take_in(self._found, record)
        self._taken_in = len(records)
        return tuple(self._found.values())

    def find(self, operation_id: str) -> JournalledOperation | None:
        """Return one operation, or None."""
        return next((one for one in self.operations() if one.operation_id == operation_id), None)

    def unfinished(self, project: str | None = None) -> tuple[JournalledOperation, ...]:
        """Return what was begun and not ended, oldest first; of one project where one is given."""
        return tuple(
            one
            for one in self.operations()
            if not one.is_finished and project in {None, one.project}
        )

    def known_specs(self, project: str) -> tuple[RunSpec, ...]:
        """Return the newest spec of each run of a project that was begun on this machine."""
        specs: dict[tuple[str, str], RunSpec] = {}
        for record in self._file.records():
            if record.get("event") != "spec":
                continue
            try:
                spec = decode_spec(str(record.get("spec")))
            except RecordError:
                logger.warning("a spec in %s can't be used", self.path, exc_info=True)
                continue
            if spec.project == project:
                specs[spec.run, spec.run_url] = spec
        return tuple(specs.values())

    @contextlib.contextmanager
    def held(self, run: str) -> Iterator[None]:
        """Hold a run for as long as something is done to it, against other processes too.

        The system lets go of it when the process ends, however that happens.

        Raises:
            RefusedError: Somebody holds it.
        """
        descriptor = self._hold(run)
        if descriptor is None:
            raise refused(
                f"another operation on {run} is going on",
                ErrorClass.NAME_TAKEN,
                detail="on this machine, by this user",
                hint="wait for it to end, or look at it where it was begun",
            )
        try:
            yield
        finally:
            os.close(descriptor)

    def is_held(self, run: str) -> bool:
        """Whether a living process is working on a run."""
        descriptor = self._hold(run)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def _hold(self, run: str) -> int | None:
        self._locks.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._locks / f"{run}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _append(self, event: str, operation_id: str, facts: Mapping[str, Any]) -> None:
        self._file.append(
            {
                "schema": SCHEMA,
                "time": self._clock.now().isoformat(),
                "event": event,
                "operation": operation_id,
                **facts,
            }
        )


def _take_in(found: dict[str, JournalledOperation], record: Mapping[str, Any]) -> None:
    """Move the operation that a record is about on; records of other shapes are passed over."""
    try:
        operation_id, event = str(record["operation"]), record["event"]
        time = datetime.fromisoformat(str(record["time"]))
        if event == "begin":
            found[operation_id] = _begun(operation_id, time, record)
            return
        known = found[operation_id]
        state = OperationState(record["state"]) if event == "end" else OperationState.RUNNING
    except (KeyError, ValueError):
        return
    node = record.get("node")
    nodes = known.nodes if not node or node in known.nodes else (*known.nodes, str(node))
    asked, accepted, unanswered = known.asked, known.accepted, known.unanswered
    if event == "intend":
        answer = record.get("cloud_operation")
        asked = None if answer else time
        unanswered = str(node) if record.get("creates") and not answer else None
        accepted = {**accepted, str(node): str(answer)} if answer else accepted
    message = str(record.get("message") or known.message)
    found[operation_id] = replace(
        known,
        updated=time,
        state=state,
        message=message,
        nodes=nodes,
        asked=asked,
        unanswered=unanswered,
        tries=_number(record.get("tries"), known.tries),
        accepted=accepted,
    )


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _begun(operation_id: str, time: datetime, record: Mapping[str, Any]) -> JournalledOperation:
    kind = OperationKind(record["kind"])
    payload: Payload | None = None
    if isinstance(record.get("payload"), dict):
        try:
            payload = decode_payload(kind, record["payload"])
        except ValueError:
            logger.warning("operation %s is of another version", operation_id)
    return JournalledOperation(
        operation_id=operation_id,
        kind=kind,
        project=str(record.get("project") or ""),
        run=str(record["run"]) if record.get("run") else None,
        title=str(record.get("title") or ""),
        started=time,
        updated=time,
        nodes=tuple(map(str, record.get("nodes") or ())),
        payload=payload,
    )


def scrubbed(text: str) -> str:
    """Return a text of the cloud's without e-mail addresses, which no record must hold.

    A run's own service account stands in its spec all the same: without it, no further node could
    be made as the first one was.
    """
    return _E_MAIL.sub("(address left out)", text)
