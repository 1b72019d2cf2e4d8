"""TPU nodes as the Cloud TPU API describes them.

States and healths are kept as plain text: a value that this client does not know must reach the
screen verbatim. Source: google/cloud/tpu/v2/cloud_tpu.proto.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tpudash.domain.resource_name import ResourceName, region_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

RUN_LABEL: Final = "tpudash-run"
OWNER_LABEL: Final = "tpudash-owner"
ATTEMPT_LABEL: Final = "tpudash-attempt"
SPEC_METADATA_KEY: Final = "tpudash-spec"


def attempt_number(text: str) -> int | None:
    """Return the number of an attempt as a label gives it; anybody may have written the label."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


class NodeState(StrEnum):
    """`Node.State` of the API, in Google's own words."""

    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    CREATING = "CREATING"
    READY = "READY"
    RESTARTING = "RESTARTING"
    REIMAGING = "REIMAGING"
    DELETING = "DELETING"
    REPAIRING = "REPAIRING"
    STOPPED = "STOPPED"
    STOPPING = "STOPPING"
    STARTING = "STARTING"
    PREEMPTED = "PREEMPTED"
    TERMINATED = "TERMINATED"
    HIDING = "HIDING"
    HIDDEN = "HIDDEN"
    UNHIDING = "UNHIDING"
    UNKNOWN = "UNKNOWN"


class NodeHealth(StrEnum):
    """`Node.Health` of the API; the field is often absent."""

    HEALTH_UNSPECIFIED = "HEALTH_UNSPECIFIED"
    HEALTHY = "HEALTHY"
    TIMEOUT = "TIMEOUT"
    UNHEALTHY_TENSORFLOW = "UNHEALTHY_TENSORFLOW"
    UNHEALTHY_MAINTENANCE = "UNHEALTHY_MAINTENANCE"


DEAD_STATES: Final = frozenset({NodeState.PREEMPTED, NodeState.TERMINATED})
"""States from which a node never comes back; it is still listed and must be deleted."""

TRANSIENT_STATES: Final = frozenset(
    {
        NodeState.CREATING,
        NodeState.RESTARTING,
        NodeState.REIMAGING,
        NodeState.DELETING,
        NodeState.REPAIRING,
        NodeState.STOPPING,
        NodeState.STARTING,
        NodeState.HIDING,
        NodeState.UNHIDING,
    }
)
"""States that end by themselves."""


class Scheduling(StrEnum):
    """How the capacity of a node is obtained, and therefore priced and taken away."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    PREEMPTIBLE = "preemptible"
    RESERVED = "reserved"

    @property
    def may_be_preempted(self) -> bool:
        """Whether Google may take the node away at short notice."""
        return self in {Scheduling.SPOT, Scheduling.PREEMPTIBLE}


@dataclass(frozen=True, slots=True)
class Worker:
    """One TPU VM of a node, in worker order (`Node.network_endpoints`)."""

    index: int
    ip_address: str
    external_ip: str | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Symptom:
    """One entry of `Node.symptoms`."""

    kind: str
    details: str
    worker_id: str
    create_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Maintenance that is announced for a node, or under way.

    Attributes:
        kind: `SCHEDULED` or `UNSCHEDULED`, or whatever else the API said, verbatim.
        status: `PENDING` or `ONGOING`, verbatim.
        can_reschedule: Whether it may be begun earlier at one's own wish.
        latest_start: When it begins at the latest.
    """

    kind: str
    status: str
    can_reschedule: bool = False
    window_start: datetime | None = None
    window_end: datetime | None = None
    latest_start: datetime | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One TPU node.

    Attributes:
        name: Full resource name.
        state: `NodeState` value, or whatever else the API said, verbatim.
        health: `NodeHealth` value, verbatim, or None where the API gave none.
        create_time: When the API says the node was created.
        metadata: The node's metadata, including `startup-script` and `tpudash-spec`.
        maintenance: What is announced; None also where that was not asked for.
        raw: Every field of the API object as JSON-like data, for the details view.
    """

    name: str
    state: str
    health: str | None = None
    health_description: str = ""
    accelerator_type: str = ""
    runtime_version: str = ""
    scheduling: Scheduling = Scheduling.ON_DEMAND
    create_time: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    workers: tuple[Worker, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    numeric_id: int | None = None
    queued_resource: str | None = None
    maintenance: Maintenance | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def node_id(self) -> str:
        """The last segment of the resource name."""
        return ResourceName.parse(self.name).resource_id

    @property
    def zone(self) -> str:
        """The zone that the node lies in."""
        return ResourceName.parse(self.name).location

    @property
    def region(self) -> str:
        """The region of the node's zone."""
        return region_of(self.zone)

    @property
    def project(self) -> str:
        """The project that the node belongs to."""
        return ResourceName.parse(self.name).project

    @property
    def run(self) -> str | None:
        """The training run that this node was made for, by its label."""
        return self.labels.get(RUN_LABEL) or None

    @property
    def owner(self) -> str | None:
        """Who launched the node's run, by its label."""
        return self.labels.get(OWNER_LABEL) or None

    @property
    def attempt(self) -> int | None:
        """Which attempt of its run this node is, by its label."""
        return attempt_number(self.labels.get(ATTEMPT_LABEL, ""))

    @property
    def is_dead(self) -> bool:
        """Whether the node is gone for good although it is still listed."""
        return self.state in DEAD_STATES

    @property
    def is_billing(self) -> bool:
        """Whether the TPU is charged for now: charges run while a node is READY.

        Source: https://cloud.google.com/tpu/pricing
        """
        return self.state == NodeState.READY


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """What a node to be created should be (the body of `CreateNode`)."""

    accelerator_type: str
    runtime_version: str
    scheduling: Scheduling
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    service_account: str | None = None
    network: str | None = None
    subnetwork: str | None = None
    tags: tuple[str, ...] = ()
    external_ips: bool = True


@dataclass(frozen=True, slots=True)
class NodeListing:
    """All nodes that could be listed, and the locations that did not answer.

    Attributes:
        unreachable: Zones whose nodes are unknown now; never to be read as "no nodes there". Of
            several projects, one that did not answer stands here as `projects/ID`.
        refusals: Why a project did not answer, by `projects/ID`.
    """

    nodes: tuple[Node, ...]
    unreachable: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict)
