"""What all conversions from protos share: times, enums that may be unknown, lazy raw objects.

Conversions read the raw protobuf messages and never the proto-plus wrappers, whose attribute
access is some twenty times slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_datetime(timestamp: Any) -> datetime | None:
    """Return a `google.protobuf.Timestamp` as an aware time; None for unset or absurd ones."""
    if not timestamp.seconds and not timestamp.nanos:
        return None
    try:
        return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
    except OverflowError:
        return None


def to_timestamp_text(time: datetime) -> str:
    """Return a time in RFC 3339 with Z, as the filter languages want it."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def enum_text(message: Any, field: str) -> str:
    """Return an enum field's name, or its number where this client's protos do not know it."""
    number = getattr(message, field)
    known = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number.get(number)
    return known.name if known is not None else str(number)


def last_segment(name: str) -> str:
    """Return what follows the last slash: the zone of `projects/P/locations/ZONE`."""
    return name.rpartition("/")[2]


class LazyObject(Mapping[str, Any]):
    """An API object as JSON-like data, converted when somebody first looks.

    Args:
        message: A raw protobuf message, which must not be changed afterwards.
    """

    __slots__ = ("_data", "_message")

    def __init__(self, message: Any) -> None:
        self._message = message
        self._data: dict[str, Any] | None = None

    def _converted(self) -> dict[str, Any]:
        if self._data is None:
            self._data = _to_dict(self._message)
            self._message = None
        return self._data

    def __getitem__(self, key: str) -> Any:
        return self._converted()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._converted())

    def __len__(self) -> int:
        return len(self._converted())

    def __repr__(self) -> str:
        return repr(self._converted())


def _to_dict(message: Any) -> dict[str, Any]:
    """Return a message as JSON-like data; a field that JSON can't hold becomes its text."""
    from google.protobuf import json_format

    faults = (TypeError, ValueError, json_format.Error)
    try:
        whole: dict[str, Any] = json_format.MessageToDict(message)
    except faults:
        found: dict[str, Any] = {}
        for field, value in message.ListFields():
            part = type(message)()
            part.CopyFrom(message)
            for other, _ in message.ListFields():
                if other is not field:
                    part.ClearField(other.name)
            try:
                found.update(json_format.MessageToDict(part))
            except faults:
                found[field.json_name] = str(value).strip()
        return found
    return whole
