"""Rules of faults: their kinds, their fields, and the reading of them from JSON."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format
from google.rpc import code_pb2

from tpudash.emulator.catalogue import load_catalogue
from tpudash.emulator.errors import ApiError, invalid_argument
from tpudash.emulator.fault_presets import CODE_OF_HTTP, code_named, preset_status

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL_SERVICE = "tpudash.emulator.Control"


class FaultKind(StrEnum):
    """What a fault does."""

    LATENCY = "latency"
    """The call waits before it is answered."""

    ERROR = "error"
    """The call is refused with a status; nothing is done."""

    DROP = "drop"
    """The call is carried out and its answer is lost with the connection."""

    LOST_REQUEST = "lost-request"
    """The connection is lost before anything is done."""

    BLACK_HOLE = "black-hole"
    """The call is never answered and nothing is done; the connection stays open."""

    PARTIAL_PAGES = "partial-pages"
    """Lists come in pages of `page_size`; with 0 the first page is empty but not the last."""

    UNREACHABLE_ZONE = "unreachable-zone"
    """Calls on the zone are refused, and wildcard lists report it as unreachable."""

    STALE_READS = "stale-reads"
    """Nodes and queued requests are read as they were `lag_s` ago."""

    CLOCK_SKEW = "clock-skew"
    """The cloud's clock is `skew_s` ahead."""

    OPERATION_NEVER_ENDS = "operation-never-ends"
    OPERATION_FAILS = "operation-fails"

    STOCK_OUT = "stock-out"
    """There are no free chips of `accelerator_type` in the zone."""

    PREEMPTION_STORM = "preemption-storm"
    """Spot and preemptible nodes are taken back at `rate_per_hour`, drawn from `seed`."""


@dataclass(slots=True)
class Fault:
    """One rule; it ends when cleared or when its count is used up."""

    kind: FaultKind
    id: int = 0
    method: str = "*"
    """Pattern over `service/Method`, over `Method` alone, or over the verb of an operation."""

    zone: str = "*"
    accelerator_type: str = "*"
    probability: float = 1.0
    remaining: int | None = None
    """How many more times it acts; None means without end."""

    after_s: float = 0.0
    for_s: float | None = None
    every_s: float | None = None
    """In force from `after_s` on for `for_s` (None: for good), again after each `every_s`."""

    latency_s: float = 0.0
    page_size: int = 1
    lag_s: float = 0.0
    skew_s: float = 0.0
    rate_per_hour: float = 0.0
    notice_s: float = 30.0
    seed: int = 0
    status: Any = None
    """A google.rpc.Status for the kinds that refuse."""

    began: float = 0.0
    """When it was put in force, on the monotonic clock."""

    def is_due(self, now: float) -> bool:
        """Return whether the schedule has it in force at a moment of the monotonic clock."""
        return self.changes_in(now)[0]

    def changes_in(self, now: float) -> tuple[bool, float | None]:
        """Return whether it is in force, and in how many seconds that changes (None: never)."""
        age = now - self.began - self.after_s
        if age < 0:
            return False, -age
        if self.for_s is None:
            return True, None
        if self.every_s is not None:
            age %= self.every_s
        if age < self.for_s:
            return True, self.for_s - age
        return False, None if self.every_s is None else self.every_s - age

    def concerns(self, method: str, zone: str) -> bool:
        """Return whether a call or an operation's verb in a zone matches."""
        named = fnmatch.fnmatchcase(method, self.method) or fnmatch.fnmatchcase(
            method.rpartition("/")[2], self.method
        )
        return named and fnmatch.fnmatchcase(zone, self.zone) and self.remaining != 0


_NUMBERS = {
    "probability": (0.0, 1.0),
    "after_s": (0.0, None),
    "for_s": (0.0, None),
    "every_s": (0.0, None),
    "latency_s": (0.0, None),
    "lag_s": (0.0, None),
    "skew_s": (None, None),
    "rate_per_hour": (0.001, None),
    "notice_s": (0.0, None),
}
"""Numbers with their least and greatest value."""

_WHOLE = {"count": 1, "page_size": 0, "seed": None}
_TEXTS = ("method", "zone", "accelerator_type")
_OTHER = ("kind", "code", "message", "details")
_NEEDED = {
    FaultKind.LATENCY: "latency_s",
    FaultKind.STALE_READS: "lag_s",
    FaultKind.CLOCK_SKEW: "skew_s",
    FaultKind.PREEMPTION_STORM: "rate_per_hour",
}
_REFUSING = frozenset({FaultKind.ERROR, FaultKind.OPERATION_FAILS})


def parse_fault(fields: Mapping[str, Any]) -> Fault:
    """Read a rule; what is null or absent takes its default.

    `kind` may be an HTTP status such as 429, which stands for `error` with that `code`.

    Raises:
        ApiError: INVALID_ARGUMENT that names the field.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    unknown = set(given) - set(_NUMBERS) - set(_WHOLE) - set(_TEXTS) - set(_OTHER)
    if unknown:
        raise invalid_argument(f"unknown field: {', '.join(sorted(unknown))}")
    kind = _kind(given)
    fault = Fault(kind)
    for key, (least, most) in _NUMBERS.items():
        if key in given:
            setattr(fault, key, _number(key, given[key], least, most))
    for key, lowest in _WHOLE.items():
        if key in given:
            value = _number(key, given[key], lowest, None)
            if value != int(value):
                raise invalid_argument(f"{key} must be a whole number")
            setattr(fault, "remaining" if key == "count" else key, int(value))
    for key in _TEXTS:
        if key in given:
            if not isinstance(given[key], str) or not given[key]:
                raise invalid_argument(f"{key} must be a text that is not empty")
            setattr(fault, key, given[key])
    fault.status = _status(given)
    _check(fault, given)
    return fault


def _kind(given: dict[str, Any]) -> FaultKind:
    word = given.get("kind", "")
    word = str(int(word)) if isinstance(word, float) else str(word)
    if word.isdecimal() and int(word) in CODE_OF_HTTP:
        given["code"] = word
        return FaultKind.ERROR
    try:
        return FaultKind(word)
    except ValueError:
        kinds = ", ".join(FaultKind)
        raise invalid_argument(f"kind must be one of {kinds}, or an HTTP status") from None


def _number(key: str, value: object, least: float | None, most: float | None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  (not a number)
        raise invalid_argument(f"{key} must be a number")
    if least is not None and value < least:
        wanted = "not be negative" if least == 0 else f"be {least:g} or more"
        raise invalid_argument(f"{key} must {wanted}")
    if most is not None and value > most:
        raise invalid_argument(f"{key} must be {most:g} or less")
    return float(value)


def _status(given: dict[str, Any]) -> Any:
    """Build the status of a fault from a code, a text and details in JSON."""
    name = code_named(given.get("code", "UNAVAILABLE"))
    if name is None:
        raise invalid_argument(f'"{given["code"]}" is not a status code')
    message = given.get("message")
    status = preset_status(name, None if message is None else str(message))
    details = given.get("details")
    if details is None:
        return status
    if not isinstance(details, list):
        raise invalid_argument("details must be a list of messages with @type")
    if details or message is not None:
        del status.details[:]
    for detail in details:
        if not isinstance(detail, dict) or "@type" not in detail:
            raise invalid_argument("details must be a list of messages with @type")
        try:
            json_format.ParseDict(detail, status.details.add())
        except (json_format.ParseError, TypeError) as error:
            raise invalid_argument(f"details: {error}") from error
    return status


def _check(fault: Fault, given: dict[str, Any]) -> None:
    """Refuse a rule that could never do anything."""
    needed = _NEEDED.get(fault.kind)
    if needed is not None and needed not in given:
        raise invalid_argument(f"{fault.kind} needs {needed}")
    zones = load_catalogue().zones
    if fault.kind is FaultKind.UNREACHABLE_ZONE and fault.zone not in zones:
        raise invalid_argument(f'unreachable-zone needs a zone, and "{fault.zone}" is none')
    if not any(character in fault.zone for character in "*?[") and fault.zone not in zones:
        raise invalid_argument(f'there is no zone "{fault.zone}"')
    if fault.every_s is not None and (fault.for_s is None or fault.for_s >= fault.every_s):
        raise invalid_argument("every_s needs a for_s that is shorter")


def shown_fault(fault: Fault) -> dict[str, Any]:
    """Return a rule as JSON, with what its kind needs."""
    shown: dict[str, Any] = {
        "id": fault.id,
        "kind": fault.kind.value,
        "method": fault.method,
        "zone": fault.zone,
        "accelerator_type": fault.accelerator_type,
        "latency_s": fault.latency_s,
        "probability": fault.probability,
        "remaining": fault.remaining,
        "after_s": fault.after_s,
        "for_s": fault.for_s,
        "every_s": fault.every_s,
        "code": code_pb2.Code.Name(fault.status.code),
        "message": fault.status.message,
    }
    extra = {
        FaultKind.PARTIAL_PAGES: ("page_size",),
        FaultKind.STALE_READS: ("lag_s",),
        FaultKind.CLOCK_SKEW: ("skew_s",),
        FaultKind.PREEMPTION_STORM: ("rate_per_hour", "notice_s", "seed"),
    }
    return shown | {key: getattr(fault, key) for key in extra.get(fault.kind, ())}


def refusal(fault: Fault) -> ApiError:
    """Return the refusal that a rule makes."""
    return ApiError.of(fault.status)
