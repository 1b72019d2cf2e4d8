"""Queued resources: requests for capacity that Google fulfils when it can.

Source: google/cloud/tpu/v2/cloud_tpu.proto, message QueuedResource.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.node import ATTEMPT_LABEL, OWNER_LABEL, RUN_LABEL, attempt_number
from tpudash.domain.resource_name import ResourceName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from tpudash.domain.node import NodeTemplate


class RequestState(StrEnum):
    """`QueuedResourceState.State` of the API, in Google's own words."""

    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    CREATING = "CREATING"
    ACCEPTED = "ACCEPTED"
    PROVISIONING = "PROVISIONING"
    FAILED = "FAILED"
    DELETING = "DELETING"
    ACTIVE = "ACTIVE"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    WAITING_FOR_RESOURCES = "WAITING_FOR_RESOURCES"


WAITING_REQUEST_STATES: Final = frozenset(
    {
        RequestState.CREATING,
        RequestState.ACCEPTED,
        RequestState.WAITING_FOR_RESOURCES,
        RequestState.PROVISIONING,
    }
)
"""The request may still be fulfilled."""

FINISHED_REQUEST_STATES: Final = frozenset({RequestState.FAILED, RequestState.SUSPENDED})
"""The request will never be fulfilled again, and holds quota until it is deleted."""


@dataclass(frozen=True, slots=True)
class QueuedResource:
    """One queued request for TPU capacity.

    Attributes:
        name: Full resource name.
        state: `RequestState` value, or whatever else the API said, verbatim.
        initiator: Who caused the state, `USER` or `SERVICE`, where the API says.
        failure: The cloud's own words when the request failed.
        node_names: Full names of the nodes that it asks for.
        labels: Those of the first node that it asks for; a request has none of its own.
        metadata: That of the first node that it asks for.
    """

    name: str
    state: str
    create_time: datetime | None = None
    initiator: str | None = None
    failure: str | None = None
    node_names: tuple[str, ...] = ()
    accelerator_type: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def request_id(self) -> str:
        """The last segment of the resource name."""
        return ResourceName.parse(self.name).resource_id

    @property
    def zone(self) -> str:
        """The zone that the request waits in."""
        return ResourceName.parse(self.name).location

    @property
    def run(self) -> str | None:
        """The training run that it was made for, by its node's label."""
        return self.labels.get(RUN_LABEL) or None

    @property
    def owner(self) -> str | None:
        """Who made it, by its node's label."""
        return self.labels.get(OWNER_LABEL) or None

    @property
    def attempt(self) -> int | None:
        """Which attempt of its run it was made for, by its node's label."""
        return attempt_number(self.labels.get(ATTEMPT_LABEL, ""))


class Tier(StrEnum):
    """How a queued resource is served; neither `spot` nor `guaranteed` is on demand."""

    ON_DEMAND = ""
    SPOT = "spot"
    GUARANTEED = "guaranteed"


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """What a queued resource to be created should be (the body of `CreateQueuedResource`).

    Attributes:
        valid_until: How long it may wait from its creation, or None for no end.
        reservation: Full name of the reservation that it draws on, or None.
        idempotency_key: A UUID; the service makes one resource for it however often it is asked.
    """

    node_id: str
    node: NodeTemplate
    tier: Tier = Tier.ON_DEMAND
    valid_until: timedelta | None = None
    reservation: str | None = None
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class RequestListing:
    """All queued resources that could be listed, and the locations that did not answer.

    Attributes:
        refusals: Why a project did not answer, by `projects/ID`.
    """

    requests: tuple[QueuedResource, ...]
    unreachable: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
