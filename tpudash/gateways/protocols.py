"""What the rest of tpudash may ask of the outside world.

Every method raises `tpudash.errors.TpudashError` and nothing else; its `failure` carries the
classified cause. A method that changes something raises `OutcomeUnknownError` when no answer came
back. Times are aware and in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tpudash.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from tpudash.domain.budget import Budget, BudgetDraft
    from tpudash.domain.failure import CloudStatus
    from tpudash.domain.log import LogEntry
    from tpudash.domain.metric import MetricSeries
    from tpudash.domain.node import Maintenance, Node, NodeListing, NodeTemplate
    from tpudash.domain.price import Price
    from tpudash.domain.probe import FirewallRule, QuotaLimit
    from tpudash.domain.request import QueuedResource, RequestListing, RequestTemplate
    from tpudash.domain.shell import ShellPort


@dataclass(frozen=True, slots=True)
class CloudOperation:
    """A long-running operation as `google.longrunning.Operations` tells it.

    Attributes:
        error: The error in which it ended, or None.
        target: Full name of the resource that it works on.
        verb: `create`, `delete`, ..., as its metadata says.
    """

    name: str
    done: bool
    error: CloudStatus | None = None
    target: str = ""
    verb: str = ""
    create_time: datetime | None = None
    end_time: datetime | None = None


class TpuGateway(Protocol):
    """Whatever provides TPU nodes: the Cloud TPU API, v2.

    Nodes of Compute Engine (TPU7x and later, which this API does not know) would come from another
    provider of the same shape, joined with this one as `SeveralTpu` joins projects.
    """

    async def list_nodes(self, location: str = "-") -> NodeListing:
        """List all nodes of a location (`-` is every zone), all pages of them."""
        ...

    async def list_maintenance(self, location: str = "-") -> Mapping[str, Maintenance]:
        """Return what maintenance is announced, by full name of the node."""
        ...

    async def get_node(self, name: str) -> Node:
        """Return one node by full name; raises `NotFoundError` when it is gone for sure."""
        ...

    async def create_node(self, zone: str, node_id: str, template: NodeTemplate) -> CloudOperation:
        """Begin to create a node."""
        ...

    async def delete_node(self, name: str) -> CloudOperation:
        """Begin to delete a node."""
        ...

    async def get_operation(self, name: str) -> CloudOperation:
        """Return a long-running operation as it stands."""
        ...

    async def list_requests(self, location: str = "-") -> RequestListing:
        """List all queued resources of a location."""
        ...

    async def get_request(self, name: str) -> QueuedResource:
        """Return one queued resource by full name."""
        ...

    async def create_request(
        self, zone: str, request_id: str, template: RequestTemplate
    ) -> CloudOperation:
        """Begin to create a queued resource."""
        ...

    async def delete_request(self, name: str, *, force: bool = False) -> CloudOperation:
        """Begin to delete a queued resource."""
        ...

    async def list_zones(self) -> tuple[str, ...]:
        """List the zones that this project sees."""
        ...

    async def list_accelerator_types(self, zone: str) -> tuple[str, ...]:
        """List the accelerator types that a zone offers."""
        ...

    async def list_runtime_versions(self, zone: str) -> tuple[str, ...]:
        """List the runtime versions that a zone offers."""
        ...


class MonitoringGateway(Protocol):
    """Cloud Monitoring, reading."""

    async def list_series(
        self, metric: str, *, start: datetime, end: datetime, period: timedelta
    ) -> tuple[MetricSeries, ...]:
        """Read one metric for all nodes of the project, aligned to `period`, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class TailBatch:
    """One response of a log tail.

    Attributes:
        suppressed: Entries left out since the last batch, a lower bound.
    """

    entries: tuple[LogEntry, ...]
    suppressed: int = 0


class LoggingGateway(Protocol):
    """Cloud Logging, reading."""

    async def list_entries(
        self, filter_: str, *, newest_first: bool = False, limit: int = 1000
    ) -> tuple[LogEntry, ...]:
        """List entries that match, in order of their timestamps."""
        ...

    def tail(
        self, filter_: str, *, since: datetime | None = None, backlog: int = ...
    ) -> AsyncIterator[TailBatch]:
        """Stream entries as they arrive, until the caller stops or an error is raised.

        Streams are opened anew as needed, without a gap and without giving an entry twice; with
        `since`, entries of that time and later come first, the newest `backlog` of them. The
        first batch may be empty: it says that the log can be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class BillingInfo:
    """Which billing account pays for the project, and whether billing is on."""

    account: str
    enabled: bool


class BillingGateway(Protocol):
    """Cloud Billing: the catalogue of prices, the project's account, its budgets."""

    async def list_tpu_prices(self) -> Sequence[tuple[str, str, Price]]:
        """Return (generation, variant, price) of each TPU SKU that could be read."""
        ...

    async def billing_info(self) -> BillingInfo:
        """Return the project's billing account."""
        ...

    async def list_budgets(self, account: str) -> tuple[Budget, ...]:
        """List the budgets of an account that the caller may see."""
        ...

    async def list_covering_budgets(self, account: str) -> tuple[Budget, ...]:
        """List the budgets that count this project's spending: its own, and the account's."""
        ...

    async def create_budget(self, account: str, draft: BudgetDraft) -> Budget:
        """Make a budget of this project's spending, by the month."""
        ...

    async def update_budget(self, budget: Budget, draft: BudgetDraft) -> Budget:
        """Change a budget, unless somebody else changed it since it was read."""
        ...


class BucketGateway(Protocol):
    """Files of a bucket: a `gs://` bucket, or a folder on this machine."""

    async def exists(self, url: str) -> bool:
        """Whether a bucket, folder or file exists."""
        ...

    async def read(self, url: str) -> bytes | None:
        """Return a file's content, or None when it does not exist."""
        ...

    async def write(self, url: str, data: bytes, *, only_if_absent: bool = False) -> bool:
        """Write a whole file at once; False when it was there and must not be replaced."""
        ...

    async def rename(self, url: str, new_url: str) -> None:
        """Move a file within its bucket."""
        ...

    async def list(self, url: str) -> tuple[str, ...]:
        """List the URLs of files and folders directly below a folder."""
        ...

    async def location(self, url: str) -> str | None:
        """Return where a bucket lies, such as `us-central1` or `us`; None for a folder."""
        ...


class AccessGateway(Protocol):
    """What else can be asked about a project; every call only reads."""

    async def missing_permissions(self, names: Sequence[str]) -> frozenset[str]:
        """Return which of some rights the caller does not hold on the project."""
        ...

    async def quota_limits(self) -> tuple[QuotaLimit, ...]:
        """Return the limits of TPUs by zone and region; they say nothing of what is used."""
        ...

    async def ssh_rules(self, network: str) -> tuple[FirewallRule, ...]:
        """Return the ingress rules of a network that let TCP 22 in."""
        ...

    async def host_keys(self, node: str) -> int:
        """Return how many workers of a node have told their SSH host keys."""
        ...


@dataclass(frozen=True, slots=True)
class Cloud:
    """All gateways of one connection.

    Attributes:
        is_emulator: Whether the endpoint said that it is the local emulator; for labels only.
        account: Who is signed in, or None if that is not known.
        shells: Ways onto workers, or None where there is none.
        access: What else can be asked about the project, or None where nothing can.
        projects: All projects whose nodes are listed, the first one included; empty for one.
        each: The gateways to each of several projects alone, the first one included.
    """

    project: str
    tpu: TpuGateway
    monitoring: MonitoringGateway
    logging: LoggingGateway
    billing: BillingGateway
    bucket: BucketGateway
    is_emulator: bool = False
    account: str | None = None
    shells: ShellPort | None = None
    access: AccessGateway | None = None
    projects: tuple[str, ...] = ()
    each: tuple[Cloud, ...] = ()

    def of(self, project: str | None) -> Cloud:
        """Return the gateways to one project alone; to the first one where none is named.

        Raises:
            NotFoundError: The connection is to other projects.
        """
        for cloud in self.each or (self,):
            if project in {None, cloud.project}:
                return cloud
        raise NotFoundError(
            f"project {project} is not among those that were named",
            hint="name it too: --project ID, once for each",
        )
