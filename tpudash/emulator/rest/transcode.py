"""Requests from path, query and body; answers to JSON.

After https://cloud.google.com/endpoints/docs/grpc/transcoding: path variables bind first, the body
fills the field that the rule names, and the query the rest.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor, json_format
from google.rpc import error_details_pb2

from tpudash.emulator.errors import ApiError, invalid_argument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpudash.emulator.rest.rules import HttpRule

_SYSTEM_PARAMETERS = frozenset(
    {
        "$.xgafv",
        "$alt",
        "$fields",
        "$prettyPrint",
        "access_token",
        "alt",
        "callback",
        "fields",
        "key",
        "oauth_token",
        "prettyPrint",
        "quotaUser",
        "trace",
        "uploadType",
        "upload_protocol",
    }
)
"""What every Google API takes: https://cloud.google.com/apis/docs/system-parameters."""

_NEWER_FIELDS = frozenset(
    {
        "apiVersion",
        "autocheckpointEnabled",
        "bootDiskConfig",
        "provisioningModel",
        "reservationName",
        "runDuration",
        "terminationTimestamp",
        "upcomingMaintenance",
        "workerIds",
    }
)
"""Names that gcloud knows and the published protos of one version or the other do not."""

_UNKNOWN_NAME = re.compile(r'has no field named "([^"]+)" at "?([^".]*(?:\.[^".]+)*)"?')
_Field = descriptor.FieldDescriptor


def request_of(
    rule: HttpRule,
    request_class: Any,
    bound: dict[str, str],
    query: Iterable[tuple[str, str]],
    body: bytes,
) -> Any:
    """Build the request of an RPC.

    Raises:
        ApiError: INVALID_ARGUMENT in the words of Google's front end.
    """
    request = request_class()
    if rule.body:
        holder = request if rule.body == "*" else getattr(request, rule.body)
        _fill(holder, _json_object(body), at="" if rule.body == "*" else rule.body)
        if rule.body != "*":
            holder.SetInParent()
    for name, text in query:
        if name not in _SYSTEM_PARAMETERS:
            _set(request, name, text)
    for path, text in bound.items():
        _set(request, path, text)
    return request


def _json_object(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        content = json.loads(body)
    except ValueError as error:
        raise invalid_argument(f"Invalid JSON payload received. {error}") from None
    if not isinstance(content, dict):
        raise invalid_argument("Invalid JSON payload received. Root element must be a message.")
    return content


def _fill(message: Any, content: dict[str, Any], at: str) -> None:
    """Parse JSON into a message; what only newer protos know is left out."""
    while True:
        try:
            json_format.ParseDict(content, message)
        except json_format.ParseError as error:
            unknown = _UNKNOWN_NAME.search(str(error))
            if unknown is None:
                raise _bad_payload(str(error), at) from None
            if unknown[1] not in _NEWER_FIELDS or not _drop(content, unknown[1]):
                text = f"Unknown name \"{unknown[1]}\" at '{at or 'request'}': Cannot find field."
                raise _bad_payload(text, at) from None
            message.Clear()
        else:
            return


def _drop(content: Any, name: str) -> bool:
    """Remove a key wherever it is; return whether it was anywhere."""
    if isinstance(content, list):
        return sum(_drop(item, name) for item in content) > 0
    if not isinstance(content, dict):
        return False
    dropped = content.pop(name, None) is not None
    return dropped + sum(_drop(item, name) for item in content.values()) > 0


def _bad_payload(text: str, field: str) -> ApiError:
    message = f"Invalid JSON payload received. {text}"
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=message)
    return invalid_argument(message, error_details_pb2.BadRequest(field_violations=[violation]))


def _set(request: Any, path: str, text: str) -> None:
    """Set a field that a path or a query names, in either spelling."""
    holder = request
    *parents, name = path.split(".")
    for parent in parents:
        field = _field_of(holder, parent, path)
        if field.message_type is None or field.is_repeated:
            raise _unbound(path)
        holder = getattr(holder, field.name)
        holder.SetInParent()
    field = _field_of(holder, name, path)
    try:
        _set_field(holder, field, text)
    except (json_format.ParseError, ValueError) as error:
        raise _bad_payload(f"Invalid value at '{path}': {error}", path) from None


def _set_field(holder: Any, field: Any, text: str) -> None:
    if field.message_type is not None and field.message_type.full_name.endswith(".FieldMask"):
        paths = [_snake(part.strip()) for part in text.split(",") if part.strip()]
        getattr(holder, field.name).paths.extend(paths)
        return
    value: Any = text
    if field.type == _Field.TYPE_BOOL:
        if text.lower() not in {"true", "false", "1", "0"}:
            raise ValueError(f'"{text}" is no boolean')
        value = text.lower() in {"true", "1"}
    if field.is_repeated:
        single = type(holder)()
        json_format.ParseDict({field.json_name: [value]}, single)
        getattr(holder, field.name).extend(getattr(single, field.name))
        return
    json_format.ParseDict({field.json_name: value}, holder)


def _field_of(message: Any, name: str, path: str) -> Any:
    fields = message.DESCRIPTOR.fields_by_name
    field = fields.get(name) or fields.get(_snake(name))
    if field is None:
        field = next((item for item in fields.values() if item.json_name == name), None)
    if field is None:
        raise _unbound(path)
    return field


def _unbound(path: str) -> ApiError:
    text = (
        f'Unknown name "{path}": Cannot bind query parameter. '
        f"Field '{path}' could not be found in request message."
    )
    return _bad_payload(text, path)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)


def numeric_enums(query: Iterable[tuple[str, str]]) -> bool:
    """Return whether the caller wants enums as numbers: `$alt=json;enum-encoding=int`."""
    return any(name in {"$alt", "alt"} and "enum-encoding=int" in text for name, text in query)


def json_of(message: Any, *, numeric: bool) -> dict[str, Any]:
    """Return a message as JSON, fields at their defaults left out as Google's servers do."""
    content: dict[str, Any] = json_format.MessageToDict(message, use_integers_for_enums=numeric)
    return content
