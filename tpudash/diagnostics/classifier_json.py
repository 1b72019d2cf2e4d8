"""Errors inside JSON: REST answers, operations, log entries, events of the trainer."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tpudash.diagnostics.classifier_codes import CODES, name_of
from tpudash.domain.failure import ErrorClass, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_VALUES: Final = 20_000
"""Values of one JSON text that are looked at."""

_SILENT_KEYS: Final = frozenset(
    {
        "filter",
        "query",
        "@type",
        "type",
        "logName",
        "name",
        "insertId",
        "userAgent",
        "callerSuppliedUserAgent",
        "startup-script",
        "metadata",
        "authenticationInfo",
    }
)
"""Fields whose text quotes or configures, and tells of no failure."""
_EVENT: Final = re.compile(
    r"\binstances\.(?:preempted|hostError|\w{1,20}OnHostMaintenance)$|\bnodes\.terminate$"
)
"""Methods of audit entries that nobody called: what happened to a host."""


@dataclass(frozen=True, slots=True)
class JsonFinding:
    """An error object, or a plain string to be read like any text.

    Attributes:
        given: The class, where the object says it in our own vocabulary.
        near: Where the log entry around it says that it was, such as `zone us-central1-a`.
    """

    text: str
    is_plain: bool = False
    code: str = ""
    details: tuple[Mapping[str, Any], ...] = ()
    origin: Origin = Origin.TEXT
    given: ErrorClass | None = None
    hint: str = ""
    near: str = ""


def findings_in(value: Any) -> Iterator[JsonFinding]:
    """Yield the errors and the strings in a JSON value, in their order."""
    pending: deque[tuple[Any, Origin, str]] = deque([(value, Origin.TEXT, "")])
    for _ in range(MOST_VALUES):
        if not pending:
            return
        item, origin, near = pending.popleft()
        if isinstance(item, str):
            if len(item) > 3:
                yield JsonFinding(item, is_plain=True, near=near)
        elif isinstance(item, list):
            pending.extendleft((element, origin, near) for element in reversed(item))
        elif isinstance(item, dict):
            near = _place_in(item) or near
            finding = _error_in(item, origin)
            if finding is not None:
                yield replace(finding, near=near)
                continue
            inner = Origin.OPERATION if _is_operation(item) else origin
            children = [
                (child, inner, near) for key, child in item.items() if _is_telling(key, child)
            ]
            pending.extendleft(reversed(children))


def _is_telling(key: str, child: Any) -> bool:
    """Whether a field may tell of a failure; of methods only those that are events of a host."""
    if key == "methodName":
        return isinstance(child, str) and _EVENT.search(child) is not None
    return key not in _SILENT_KEYS


def _place_in(item: Mapping[str, Any]) -> str:
    """Return the zone that a log entry's resource names, as words, or ""."""
    resource = item.get("resource")
    labels = resource.get("labels") if isinstance(resource, dict) else None
    zone = (labels.get("zone") or labels.get("location")) if isinstance(labels, dict) else None
    return f"zone {zone}" if isinstance(zone, str) else ""


def _error_in(item: Mapping[str, Any], origin: Origin) -> JsonFinding | None:
    given = item.get("class") or item.get("error_class")
    if isinstance(given, str) and given in ErrorClass.__members__:
        text = item.get("detail") or item.get("evidence") or item.get("message") or given
        hint = item.get("hint") or item.get("advice") or ""
        return JsonFinding(str(text), given=ErrorClass(given), hint=str(hint))
    if item.get("event") == "preempt":
        text = str(item.get("message") or "the trainer was told that the node is being preempted")
        return JsonFinding(text, given=ErrorClass.PREEMPTED)
    message = item.get("message", item.get("error_description"))
    code = _code_of(item)
    if not isinstance(message, str) or not code:
        return None
    return JsonFinding(message, code=code, details=_details_of(item), origin=origin)


def _code_of(item: Mapping[str, Any]) -> str:
    status = item.get("status")
    if isinstance(status, str) and status in CODES:
        return status
    code = item.get("code", status)
    if isinstance(code, str):
        return code if code in CODES else name_of(int(code)) if _is_number(code) else ""
    if isinstance(code, bool) or not isinstance(code, int):
        return ""
    return name_of(code) or ("ABORTED" if code == 409 else "")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3


def _details_of(item: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    found: list[Mapping[str, Any]] = []
    for key in ("details", "errors"):
        rows = item.get(key)
        if isinstance(rows, list):
            found.extend(row for row in rows[:50] if isinstance(row, dict))
    return tuple(found)


def _is_operation(item: Mapping[str, Any]) -> bool:
    """Whether it is a `google.longrunning.Operation`, whose error is a stock-out if of code 8."""
    name = item.get("name")
    return item.get("done") is True or (isinstance(name, str) and "/operations/" in name)
