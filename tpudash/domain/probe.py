"""What is asked of the world for one check: a question with a name, and its dated answer.

A check declares at most one. An answer that did not come says why, and is never taken for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.domain.failure import ErrorClass


class ProbeKind(StrEnum):
    """What is asked."""

    BILLING = "billing account"
    BUDGETS = "budgets"
    ZONE_OFFER = "types and runtimes of a zone"
    BUCKET = "location of a bucket"
    PERMISSIONS = "permissions"
    QUOTA = "quota limits"
    FIREWALL = "firewall rules"
    SSH_PORT = "port 22 of the workers"
    SSH_KEY = "SSH key"
    GUEST_ATTRIBUTES = "guest attributes"
    MAINTENANCE = "announced maintenance"
    CREATIONS = "this machine's own launches"


@dataclass(frozen=True, slots=True, order=True)
class ProbeKey:
    """One question.

    Attributes:
        about: The zone, bucket, node or network that is asked about; "" for the project.
    """

    kind: ProbeKind
    about: str = ""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The answer to one question, or why there is none.

    Attributes:
        value: One of the classes below, as the kind asks for; None if there is no answer.
        failure: Why there is no answer; "" if there is one.
        as_of: When it was asked.
    """

    as_of: datetime
    value: Any = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class BillingFacts:
    """Which account pays for the project; `account` is "" where none does."""

    account: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class ZoneOffer:
    """What the API lists in a zone."""

    accelerator_types: frozenset[str]
    runtime_versions: frozenset[str]


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A limit of chips or cores in one zone or region.

    Attributes:
        place: The zone or region; "" where it holds everywhere that has none of its own.
    """

    quota_id: str
    place: str
    limit: float


@dataclass(frozen=True, slots=True)
class FirewallRule:
    """An ingress rule that lets TCP 22 in, and from where."""

    name: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreationTry:
    """What one of our own launches or resumes came to in a zone.

    Attributes:
        time: When that was known.
        accelerator_type: What was asked for; "" where the journal does not say.
        error_class: Why there was no node, or None where there was one.
    """

    time: datetime
    zone: str
    accelerator_type: str
    error_class: ErrorClass | None


class PortState(StrEnum):
    """What came back from a port."""

    OPEN = "open"
    REFUSED = "refused"
    SILENT = "no answer"
    NO_ADDRESS = "no external address"
