"""Reads fields out of protobuf messages by the paths of a filter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from google.cloud.audit import audit_log_pb2
from google.protobuf import any_pb2, struct_pb2, timestamp_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import FieldDescriptor

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_PAYLOADS = {audit_log_pb2.AuditLog.DESCRIPTOR.full_name: audit_log_pb2.AuditLog}


@dataclass(frozen=True, slots=True)
class EnumValue:
    """A value of an enum: compared by number, written by name."""

    name: str
    number: int
    names: Any
    """The enum's descriptor, to look other names up."""


@cache
def snake(name: str) -> str:
    """Return `log_name` for `logName`."""
    return _CAMEL.sub(lambda match: "_" + match[1].lower(), name)


def resolve(message: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at a path: none if it is missing, several under repeated fields.

    Yields:
        Strings, numbers, booleans, `EnumValue`s or messages.
    """
    if not path:
        yield message
        return
    if isinstance(message, struct_pb2.Struct):
        if path[0] in message.fields:
            yield from _resolve_json(message.fields[path[0]], path[1:])
        return
    if isinstance(message, any_pb2.Any):
        yield from _resolve_any(message, path)
        return
    field = message.DESCRIPTOR.fields_by_name.get(snake(path[0]))
    if field is None:
        return
    yield from _resolve_field(message, field, path[1:])


def _resolve_field(message: Any, field: FieldDescriptor, rest: tuple[str, ...]) -> Iterator[Any]:
    value = getattr(message, field.name)
    if _is_map(field):
        yield from _resolve_map(value, rest)
        return
    if _is_repeated(field):
        for item in value:
            yield from _deeper(item, rest)
        return
    if field.message_type is not None:
        if message.HasField(field.name):
            yield from resolve(value, rest)
        return
    if field.containing_oneof is not None and not message.HasField(field.name):
        return
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        yield EnumValue(known.name if known else str(value), value, field.enum_type)
        return
    if not rest:
        yield value


def _resolve_map(value: Any, rest: tuple[str, ...]) -> Iterator[Any]:
    if not rest:
        yield from value.values()
    elif (key := ".".join(rest)) in value:
        yield value[key]
    elif rest[0] in value:
        yield from _deeper(value[rest[0]], rest[1:])


def _deeper(value: Any, rest: tuple[str, ...]) -> Iterator[Any]:
    if not rest:
        yield value
    elif hasattr(value, "DESCRIPTOR"):
        yield from resolve(value, rest)


def _is_repeated(field: FieldDescriptor) -> bool:
    # Protobuf before 6.31 has only the label; 7 has only the property.
    repeated = getattr(field, "is_repeated", None)
    return bool(getattr(field, "label", 0) == 3 if repeated is None else repeated)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _resolve_json(value: struct_pb2.Value, rest: tuple[str, ...]) -> Iterator[Any]:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        yield from resolve(value.struct_value, rest)
    elif kind == "list_value":
        for item in value.list_value.values:
            yield from _resolve_json(item, rest)
    elif kind == "null_value":
        if not rest:
            yield None
    elif kind is not None and not rest:
        yield getattr(value, kind)


def _resolve_any(message: any_pb2.Any, path: tuple[str, ...]) -> Iterator[Any]:
    payload_class = _PAYLOADS.get(message.TypeName())
    if path in {("@type",), ("type_url",), ("typeUrl",)}:
        yield message.type_url
    elif payload_class is not None:
        payload = payload_class()
        message.Unpack(payload)
        yield from resolve(payload, path)


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a value, as a search through all fields sees them."""
    if isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, str | int | float):
        yield value if isinstance(value, str) else f"{value:g}"
    elif isinstance(value, EnumValue):
        yield value.name
    elif isinstance(value, timestamp_pb2.Timestamp):
        yield value.ToJsonString()
    else:
        for part in _parts(value):
            yield from texts(part)


def _parts(value: Any) -> Iterator[Any]:
    """Yield what a message consists of."""
    if isinstance(value, struct_pb2.Value):
        yield from _resolve_json(value, ())
    elif isinstance(value, struct_pb2.Struct):
        yield from value.fields.values()
    elif isinstance(value, any_pb2.Any):
        payload_class = _PAYLOADS.get(value.TypeName())
        if payload_class is not None:
            payload = payload_class()
            value.Unpack(payload)
            yield payload
    elif hasattr(value, "DESCRIPTOR"):
        for field, _ in value.ListFields():
            yield from _resolve_field(value, field, ())
