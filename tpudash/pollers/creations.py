"""What this machine's own launches and resumes found in each zone, from the journal's lines.

Whoever only reads must not import operations, so the lines are read here as what they are: JSON.
The journal is written by `tpudash.operations.journal`; of operations that ended long ago it keeps
only how they began and ended.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass
from tpudash.domain.operation import OperationKind, OperationState
from tpudash.domain.probe import CreationTry
from tpudash.domain.resource_name import ResourceName

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_BYTES: Final = 32 * 1024 * 1024
MOST_TRIES: Final = 1_000
MAKING: Final = frozenset({OperationKind.LAUNCH, OperationKind.RESUME, OperationKind.SUPERVISE})
REFUSED_MARKS: Final = ("could not provide", "no node in ")
"""How a message begins or goes on that tells why a zone was left for the next one."""
_NEXT_ZONE: Final = re.compile(r"(?:^|[;:] )(?=[a-z]{2,20}-[a-z]{4,20}\d{1,2}-[a-z]: )")


@dataclass
class _Operation:
    accelerator_type: str
    zone: str
    tries: dict[str, CreationTry] = field(default_factory=dict)


def read_creations(journal: Path, project: str) -> tuple[CreationTry, ...]:
    """Return what each attempt to make a node came to in each zone, the oldest first.

    Raises:
        OSError: The journal can't be read; one that does not exist is an empty one.
    """
    try:
        with journal.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MOST_BYTES))
            lines = file.read(MOST_BYTES).splitlines()
    except FileNotFoundError:
        return ()
    return _tries_in(filter(None, map(_record_of, lines)), project)


def _record_of(line: bytes) -> dict[str, Any] | None:
    if b'"spec","operation"' in line:
        # A spec repeats what its operation says, and is by far the longest kind of line.
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _tries_in(records: Iterable[dict[str, Any]], project: str) -> tuple[CreationTry, ...]:
    operations: dict[str, _Operation] = {}
    for record in records:
        name, when = str(record.get("operation")), _time_of(record)
        if record.get("event") == "begin" and record.get("project") == project:
            if str(record.get("kind")) in MAKING:
                operations[name] = _begun(record)
        elif name in operations and when is not None:
            _take(operations[name], record, when)
    found = [one for operation in operations.values() for one in operation.tries.values()]
    return tuple(sorted(found, key=lambda one: one.time)[-MOST_TRIES:])


def _begun(record: dict[str, Any]) -> _Operation:
    payload = record.get("payload")
    spec = payload.get("spec") if isinstance(payload, dict) else None
    kind = spec.get("accelerator_type") if isinstance(spec, dict) else None
    nodes = record.get("nodes")
    # A resume also names what it deletes; what it makes stands last.
    zone = _zone_of(nodes[-1]) if isinstance(nodes, list) and nodes else ""
    return _Operation(str(kind or ""), zone)


def _take(operation: _Operation, record: dict[str, Any], when: datetime) -> None:
    event, message = record.get("event"), str(record.get("message") or "")
    has_failed = event == "end" and record.get("state") == OperationState.FAILED
    is_left = event == "progress" and any(mark in message for mark in REFUSED_MARKS)
    if event == "intend" and record.get("creates") is True:
        operation.zone = _zone_of(record.get("node")) or operation.zone
    elif has_failed or is_left:
        _refused(operation, message, when)
    elif event == "end" and record.get("state") == OperationState.DONE and operation.zone:
        operation.tries[operation.zone] = CreationTry(
            when, operation.zone, operation.accelerator_type, None
        )


def _refused(operation: _Operation, message: str, when: datetime) -> None:
    # Before the first zone stands our own summary, which names the class of none of them.
    parts = _NEXT_ZONE.split(message)
    for part in parts[1:] or parts:
        for failure in classify_text(part):
            zone = failure.scope.zone or operation.zone
            known = failure.error_class is not ErrorClass.UNCLASSIFIED
            if zone and (known or zone not in operation.tries):
                kind = operation.accelerator_type
                operation.tries[zone] = CreationTry(when, zone, kind, failure.error_class)


def _zone_of(name: object) -> str:
    try:
        return ResourceName.parse(str(name)).location
    except ValueError:
        return ""


def _time_of(record: dict[str, Any]) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(record.get("time")))
    except ValueError:
        return None
    return moment if moment.tzinfo else None
