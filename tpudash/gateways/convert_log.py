"""Log entries: from `google.logging.v2.LogEntry` to ours, whatever the payload holds."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.log import LogEntry, Severity
from tpudash.domain.node import ATTEMPT_LABEL, RUN_LABEL, attempt_number
from tpudash.gateways.convert import to_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping

STREAM_LABEL: Final = "stream"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = 2**53
_DEEPEST: Final = 60
_SEVERITIES: Final = {
    0: Severity.DEFAULT,
    100: Severity.DEBUG,
    200: Severity.INFO,
    300: Severity.NOTICE,
    400: Severity.WARNING,
    500: Severity.ERROR,
    600: Severity.CRITICAL,
    700: Severity.ALERT,
    800: Severity.EMERGENCY,
}
_TEXT_KEYS: Final = ("message", "msg", "text", "textPayload", "log")


def entry_of(message: Any) -> LogEntry:
    """Convert one raw LogEntry message."""
    labels = message.labels
    resource = message.resource.labels
    payload, text = _payload_of(message)
    node_id, zone = _place_of(resource, payload)
    return LogEntry(
        timestamp=(
            to_datetime(message.timestamp) or to_datetime(message.receive_timestamp) or _EPOCH
        ),
        severity=_severity_of(message.severity),
        text=text,
        insert_id=message.insert_id,
        node_id=node_id,
        zone=zone,
        worker_id=resource.get("worker_id", ""),
        run=labels.get(RUN_LABEL) or None,
        attempt=attempt_number(labels.get(ATTEMPT_LABEL, "")),
        stream=labels.get(STREAM_LABEL, ""),
        payload=payload,
    )


def identity_of(message: Any) -> tuple[Any, ...]:
    """Return what makes an entry the same as another: log, time and insert id.

    Source: google/logging/v2/log_entry.proto, insert_id. An entry without one is known by its text.
    """
    time = message.timestamp
    known_by = message.insert_id or message.text_payload or str(message.json_payload)
    return (message.log_name, time.seconds, time.nanos, known_by)


def _severity_of(number: int) -> Severity:
    """Return the severity, or the next lower one for a number between two."""
    exact = _SEVERITIES.get(number)
    if exact is not None:
        return exact
    return _SEVERITIES[max((known for known in _SEVERITIES if known <= number), default=0)]


def _payload_of(message: Any) -> tuple[Mapping[str, Any] | None, str]:
    kind = message.WhichOneof("payload")
    if kind == "text_payload":
        return None, message.text_payload
    if kind == "json_payload":
        payload = struct_to_dict(message.json_payload)
        return payload, _text_of(payload)
    if kind == "proto_payload":
        payload = _proto_payload(message.proto_payload)
        return payload, _text_of_proto(payload)
    return None, ""


def struct_to_dict(struct: Any, depth: int = 0) -> dict[str, Any]:
    """Return a `google.protobuf.Struct` as plain data; NaN and infinities become their names."""
    return {name: _value(value, depth) for name, value in struct.fields.items()}


def _value(value: Any, depth: int) -> Any:
    kind = value.WhichOneof("kind")
    if kind in {"struct_value", "list_value"}:
        if depth >= _DEEPEST:
            return "..."
        if kind == "struct_value":
            return struct_to_dict(value.struct_value, depth + 1)
        return [_value(item, depth + 1) for item in value.list_value.values]
    if kind == "number_value":
        return _number(value.number_value)
    return None if kind in {None, "null_value"} else getattr(value, kind)


def _number(number: float) -> float | int | str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _text_of(payload: Mapping[str, Any]) -> str:
    for key in _TEXT_KEYS:
        text = payload.get(key)
        if isinstance(text, str) and text:
            return text
    return json.dumps(payload, ensure_ascii=False)


def _proto_payload(packed: Any) -> dict[str, Any]:
    """Return an audit entry as plain data; of a type that is not known here, its name alone."""
    from google.protobuf import json_format

    try:
        from google.cloud.audit import audit_log_pb2  # noqa: F401  registers the type

        found: dict[str, Any] = json_format.MessageToDict(packed)
    except (ImportError, TypeError, ValueError, json_format.Error):
        return {"@type": packed.type_url}
    return found


def _text_of_proto(payload: Mapping[str, Any]) -> str:
    status = payload.get("status")
    said = status.get("message", "") if isinstance(status, dict) else ""
    method = str(payload.get("methodName", payload.get("@type", "")))
    return ": ".join(part for part in (method, said) if part)


def _place_of(resource: Mapping[str, str], payload: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return node id and zone: of the worker, or of the node that an audit entry is about."""
    if resource.get("node_id"):
        return resource["node_id"], resource.get("zone", "")
    name = payload.get("resourceName") if payload else None
    parts = name.split("/") if isinstance(name, str) else []
    if len(parts) == 6 and parts[2] == "locations" and parts[4] == "nodes":
        return parts[5], parts[3]
    return "", resource.get("zone", "")
