"""How a log entry is kept as bytes: insert id, text, and of structured ones message and payload."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from tpudash.domain.log import LogEntry
from tpudash.logtext.clean import clean_text
from tpudash.logtext.events import describe_event
from tpudash.logtext.guess import claim_of
from tpudash.store.log_lines import RANKS, SEVERITIES, LogLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.store.log_lines import LogSource

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SEPARATOR: Final = "\x1f"
_MICROSECOND: Final = timedelta(microseconds=1)
_INFO: Final = 2
_CLAIMED_LIMIT: Final = 300


Prepared: TypeAlias = tuple[bytes, str, int, int]
"""An entry that is ready to be kept: its record, its text, its rank, where its message begins.

A plain tuple, because one is made of every entry.
"""


def micros_of(time: datetime) -> int:
    """Return a time in microseconds since the epoch."""
    since = time - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def time_of(micros: int) -> datetime:
    """Return microseconds since the epoch as a time."""
    return EPOCH + timedelta(microseconds=micros)


def prepare(entry: LogEntry) -> Prepared:
    """Clean an entry's text and pack it; a severity that the text itself claims counts."""
    text = entry.text
    if not (text.isascii() and text.isprintable()):
        text = clean_text(text)
    rank = RANKS[entry.severity]
    if entry.payload is not None:
        payload = _json(entry.payload)
        shown = clean_text(describe_event(entry.payload)) or text or clean_text(payload)
        parts = (identity_of(entry), shown, text, payload)
        return SEPARATOR.join(parts).encode("utf-8", "replace"), shown, rank, 0
    severity, start = claim_of(text if len(text) <= _CLAIMED_LIMIT else text[:_CLAIMED_LIMIT])
    if severity is not None and rank <= _INFO:
        rank = max(rank, RANKS[severity])
    insert_id = entry.insert_id
    if not insert_id.isprintable():
        insert_id = identity_of(entry)
    data = f"{insert_id}{SEPARATOR}{text}".encode("utf-8", "replace")
    return data, text, rank, start


def identity_of(entry: LogEntry) -> str:
    """Return what an entry is known by beside its time; "" if by its text alone."""
    insert_id = entry.insert_id
    if insert_id.isprintable():
        return insert_id
    return clean_text(insert_id).replace("\n", " ")


def line_of(data: bytes, number: int, micros: int, source: LogSource, mark: int) -> LogLine:
    """Return what was kept as a line."""
    insert_id, text, *more = data.decode("utf-8", "replace").split(SEPARATOR, 3)
    message, payload = text, None
    if len(more) == 2:
        message, payload = more[0], _payload(more[1])
    entry = LogEntry(
        timestamp=time_of(micros),
        severity=SEVERITIES[mark & 0x0F],
        text=message,
        insert_id=insert_id,
        node_id=source.node_id,
        zone=source.zone,
        worker_id=source.worker_id,
        run=source.run,
        attempt=source.attempt,
        stream=source.stream,
        payload=payload,
    )
    return LogLine(number, text, entry, source, mark, micros)


def _json(payload: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(payload).decode()
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError, msgspec.MsgspecError):
        pass
    try:
        return json.dumps(payload, default=str)
    except (TypeError, ValueError, RecursionError):
        return "{}"


def _payload(text: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return {}
    return found if isinstance(found, dict) else {}
