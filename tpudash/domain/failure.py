"""The vocabulary of failures: one set of classes for operations, checklist and `explain`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorClass(StrEnum):
    """What kind of failure it is; the policy for retrying hangs on this, not on a status code."""

    STOCKOUT = "STOCKOUT"
    QUOTA = "QUOTA"
    RATE_LIMIT = "RATE_LIMIT"
    RESERVATION = "RESERVATION"
    LOCATION = "LOCATION"
    PERMISSION = "PERMISSION"
    API_OFF = "API_OFF"
    BILLING = "BILLING"
    BAD_REQUEST = "BAD_REQUEST"
    NAME_TAKEN = "NAME_TAKEN"
    PREEMPTED_IN_CREATE = "PREEMPTED_IN_CREATE"
    PREEMPTED = "PREEMPTED"
    GONE = "GONE"
    MAINTENANCE = "MAINTENANCE"
    INTERNAL = "INTERNAL"
    UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME"
    PARTIAL_SLICE = "PARTIAL_SLICE"
    DEVICE_BUSY = "DEVICE_BUSY"
    VERSION = "VERSION"
    CONNECT = "CONNECT"
    HBM_OOM = "HBM_OOM"
    HOST_OOM = "HOST_OOM"
    LOCAL_PATH = "LOCAL_PATH"
    BUCKET_ACCESS = "BUCKET_ACCESS"
    CKPT_INCOMPLETE = "CKPT_INCOMPLETE"
    STALLED = "STALLED"
    AUTH_EXPIRED = "AUTH_EXPIRED"
    UNCLASSIFIED = "UNCLASSIFIED"


class RetryPolicy(StrEnum):
    """What may be done about a failure without asking the user."""

    NEVER = "never"
    SAME_PLACE = "same-place"
    NEXT_ZONE = "next-zone"
    ASK_AGAIN = "ask-again"
    """Only questions may be repeated: the outcome of the change is not known."""


class Origin(StrEnum):
    """Where an error arrived, which tells quota (at the call) from stock-out (in the operation)."""

    CALL = "call"
    OPERATION = "operation"
    LOG = "log"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """An error as the cloud gave it, free of any transport's classes.

    Attributes:
        code: Canonical code name such as `RESOURCE_EXHAUSTED` (google.rpc.Code), or "" if unknown.
        message: The cloud's own words.
        details: The `google.rpc.Status.details` as JSON-like objects, each with its `@type`.
        origin: Where it arrived.
    """

    code: str
    message: str
    details: tuple[Mapping[str, Any], ...] = ()
    origin: Origin = Origin.CALL


@dataclass(frozen=True, slots=True)
class Scope:
    """What a failure is about: as much as is known of place and thing."""

    project: str | None = None
    region: str | None = None
    zone: str | None = None
    worker: str | None = None
    bucket: str | None = None
    quota: str | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A classified failure: what it is, where it holds, the evidence, and what to do.

    Attributes:
        evidence: The cloud's own words, without the error id.
        eid: Google's error id (`0x...`) for support, if the text had one.
        advice: What the user can do, in a sentence or two.
    """

    error_class: ErrorClass
    evidence: str
    advice: str
    retry: RetryPolicy
    scope: Scope = field(default_factory=Scope)
    eid: str | None = None
