"""Log entries from lines of text: JSON of several writers, and anything else as it is."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.log import LogEntry, Severity
from tpudash.logtext.guess import guess_moment, guess_severity

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The timestamp of an entry whose time is not known."""
LONGEST_JSON: Final = 512 * 1024
_TEXT_KEYS: Final = ("textPayload", "text", "message", "msg")


def entry_of_line(
    text: str, *, node_id: str = "", worker_id: str = "", stream: str = ""
) -> LogEntry:
    """Return a clean line of text as an entry.

    A JSON object is read as the trainer's event, as the agent's copy of its log, as an entry of
    `tpudash logs --json` or as one of `gcloud logging read --format=json`; any other object is
    kept as a payload.
    """
    if text[:1] == "{" and len(text) <= LONGEST_JSON:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return entry_of_json(value, node_id=node_id, worker_id=worker_id, stream=stream)
    return LogEntry(
        guess_moment(text, datetime.now(UTC).year) or UNKNOWN_TIME,
        guess_severity(text) or Severity.DEFAULT,
        text,
        node_id=node_id,
        worker_id=worker_id,
        stream=stream,
    )


def entry_of_json(
    value: Mapping[str, Any],
    *,
    node_id: str = "",
    worker_id: str = "",
    stream: str = "",
    run: str | None = None,
    attempt: int | None = None,
) -> LogEntry:
    """Return an object, whatever is in it, as an entry; what it says itself goes first."""
    resource = _mapping(_mapping(value.get("resource")).get("labels"))
    labels = _mapping(value.get("labels"))
    payload = _payload_of(value)
    said = payload if payload is not None else value
    return LogEntry(
        timestamp=_moment(value.get("timestamp") or value.get("ts")) or UNKNOWN_TIME,
        severity=_severity(value.get("severity")),
        text=_text_of(value, payload),
        insert_id=_word(value, "insertId", "insert_id"),
        node_id=_word(resource, "node_id") or _word(value, "node") or node_id,
        zone=_word(resource, "zone") or _word(value, "zone"),
        worker_id=_word(resource, "worker_id") or _number_word(value.get("worker")) or worker_id,
        run=_word(labels, "tpudash-run") or _word(said, "run") or run,
        attempt=_whole(labels.get("tpudash-attempt", said.get("attempt"))) or attempt,
        stream=_word(labels, "stream") or _word(value, "stream") or stream,
        payload=payload,
    )


def _payload_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for key in ("jsonPayload", "protoPayload", "payload", "json"):
        inner = value.get(key)
        if isinstance(inner, dict):
            return inner
    if "textPayload" in value or "insert_id" in value:
        return None
    return value


def _text_of(value: Mapping[str, Any], payload: Mapping[str, Any] | None) -> str:
    text = _word(value, *_TEXT_KEYS) or _word(payload or {}, *_TEXT_KEYS)
    if text or payload is None:
        return text
    try:
        return json.dumps(payload, ensure_ascii=False, default=str)
    except (RecursionError, TypeError, ValueError):
        return "(a structured entry that can't be shown)"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def _number_word(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    return str(value)[:80]


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and value > 0 else None


def _severity(value: object) -> Severity:
    try:
        return Severity(str(value).upper())
    except ValueError:
        return Severity.DEFAULT


def _moment(value: object) -> datetime | None:
    return guess_moment(value, 1970) if isinstance(value, str) else None
