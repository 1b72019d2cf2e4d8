"""A cloud in memory for what the emulator can't be made to do: to break off between any two calls.

It keeps the rules that operations rely on: names are taken, creations and deletions take time, a
node that was preempted stays listed, and a stock-out arrives inside the operation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from tpudash.domain.failure import CloudStatus, ErrorClass, Failure, Origin, RetryPolicy
from tpudash.domain.node import RUN_LABEL, Node, NodeListing, NodeState, NodeTemplate
from tpudash.domain.request import (
    WAITING_REQUEST_STATES,
    QueuedResource,
    RequestListing,
    RequestState,
    RequestTemplate,
)
from tpudash.domain.resource_name import ResourceName, node_name, request_name
from tpudash.errors import NotFoundError, OperationFailedError, TpudashError
from tpudash.gateways.protocols import Cloud, CloudOperation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.domain.node import Maintenance

PROJECT = "demo"
ZONE = "us-central1-b"
OTHER_ZONE = "us-central1-c"
RUNTIME = "tpu-vm-tf-2.19.0-pjrt"
BUCKET = "gs://b"
STOCKOUT_TEXT = 'There is no more capacity in the zone "us-central1-b"'


class CrashError(BaseException):
    """Stands for the end of the process, which nothing catches."""


class FakeClock:
    """Time that passes only when somebody waits for it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 12, 1, 8, tzinfo=UTC)
        self._passed = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        self.pass_(seconds)
        await asyncio.sleep(0)

    def pass_(self, seconds: float) -> None:
        self._passed += seconds
        self.time += timedelta(seconds=seconds)


def refusal(kind: ErrorClass, text: str, retry: RetryPolicy = RetryPolicy.NEVER) -> TpudashError:
    """Return an error as the gateways would raise it."""
    failure = Failure(kind, text, "", retry)
    error = NotFoundError if kind is ErrorClass.GONE else OperationFailedError
    return error(text, detail=text, failure=failure)


@dataclass
class FakeWorld:
    """Nodes, requests, operations and files, and what was asked of them."""

    clock: FakeClock
    nodes: dict[str, Node] = field(default_factory=dict)
    requests: dict[str, QueuedResource] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    buckets: set[str] = field(default_factory=lambda: {BUCKET})
    templates: dict[str, RequestTemplate] = field(default_factory=dict)
    operations: dict[str, CloudOperation] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    stocked_out: set[str] = field(default_factory=set)
    unreachable: tuple[str, ...] = ()
    bucket_location: str | None = "us-central1"
    before: Callable[[str, str], None] = lambda method, target: None
    after: Callable[[str, str], None] = lambda method, target: None
    most_live: int = 0

    def made(self, name: str, state: str = NodeState.READY, **fields: Any) -> Node:
        """Put a node into the world."""
        self.nodes[name] = Node(
            name=name,
            state=state,
            accelerator_type="v2-8",
            create_time=self.clock.now(),
            **fields,
        )
        return self.nodes[name]

    def set_state(self, name: str, state: str) -> None:
        self.nodes[name] = replace(self.nodes[name], state=state)

    def live(self, run: str) -> list[str]:
        """Return the nodes of a run that train or could."""
        states = {NodeState.CREATING, NodeState.READY}
        return [
            node.node_id
            for node in self.nodes.values()
            if node.labels.get(RUN_LABEL) == run and node.state in states
        ]

    def counted(self, method: str) -> int:
        return sum(call.split()[0] == method for call in self.calls)

    def tick(self, name: str) -> None:
        """Move an operation to its end; looking at it is what makes its time pass."""
        operation = self.operations[name]
        if operation.done or operation.verb == "slow":
            return
        node = self.nodes.get(operation.target)
        error = None
        if operation.verb == "delete":
            self.nodes.pop(operation.target, None)
        elif node is not None and node.zone in self.stocked_out:
            error = CloudStatus("RESOURCE_EXHAUSTED", STOCKOUT_TEXT, (), Origin.OPERATION)
            del self.nodes[operation.target]
        elif node is not None and node.state == NodeState.CREATING:
            self.set_state(operation.target, NodeState.READY)
        self.operations[name] = replace(operation, done=True, error=error)

    def serve(self, request: QueuedResource) -> None:
        """Move a request on by one state; without capacity it waits, and fails when it may not."""
        template = self.templates[request.name]
        state, failure = request.state, None
        if state == RequestState.ACCEPTED:
            state = RequestState.WAITING_FOR_RESOURCES
        elif state == RequestState.WAITING_FOR_RESOURCES and request.zone in self.stocked_out:
            made = request.create_time or self.clock.now()
            if template.valid_until and self.clock.now() - made >= template.valid_until:
                state, failure = RequestState.FAILED, "the validity interval ended"
        elif state == RequestState.WAITING_FOR_RESOURCES:
            state = RequestState.PROVISIONING
            (name,) = request.node_names
            node = self.made(
                name,
                NodeState.CREATING,
                labels=request.labels,
                metadata=request.metadata,
                # The service writes the project's number where the client wrote its id.
                queued_resource=request.name.replace(f"projects/{PROJECT}/", "projects/4711/"),
            )
            self.nodes[name] = replace(node, scheduling=template.node.scheduling)
            self.note_live()
        elif state == RequestState.PROVISIONING:
            state = RequestState.ACTIVE
            (name,) = request.node_names
            if name in self.nodes and self.nodes[name].state == NodeState.CREATING:
                self.set_state(name, NodeState.READY)
        self.requests[request.name] = replace(request, state=state, failure=failure)

    def note_live(self) -> None:
        runs = {node.run for node in self.nodes.values() if node.run}
        self.most_live = max([self.most_live, *(len(self.live(run)) for run in runs)])


class FakeTpu:
    """`TpuGateway`."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world

    def _enter(self, method: str, target: str) -> None:
        self.world.before(method, target)
        self.world.calls.append(f"{method} {target}")

    async def list_nodes(self, location: str = "-") -> NodeListing:
        self._enter("list_nodes", location)
        nodes = (node for node in self.world.nodes.values())
        seen = tuple(node for node in nodes if node.zone not in self.world.unreachable)
        return NodeListing(seen, self.world.unreachable)

    async def list_maintenance(self, location: str = "-") -> dict[str, Maintenance]:
        return {}

    async def get_node(self, name: str) -> Node:
        self._enter("get_node", name)
        for operation in [one for one in self.world.operations.values() if one.target == name]:
            if self.world.counted("get_node") % 3 == 0:
                self.world.tick(operation.name)
        node = self.world.nodes.get(name)
        if node is None:
            raise refusal(ErrorClass.GONE, f"{name} was not found")
        return node

    async def create_node(self, zone: str, node_id: str, template: NodeTemplate) -> CloudOperation:
        name = node_name(PROJECT, zone, node_id)
        self._enter("create_node", name)
        if name in self.world.nodes:
            raise refusal(ErrorClass.NAME_TAKEN, f"{name} already exists")
        node = Node(
            name=name,
            state=NodeState.CREATING,
            accelerator_type=template.accelerator_type,
            runtime_version=template.runtime_version,
            scheduling=template.scheduling,
            create_time=self.world.clock.now(),
            labels=dict(template.labels),
            metadata=dict(template.metadata),
        )
        self.world.nodes[name] = node
        self.world.note_live()
        return self._began("create", name)

    async def delete_node(self, name: str) -> CloudOperation:
        self._enter("delete_node", name)
        if name not in self.world.nodes:
            raise refusal(ErrorClass.GONE, f"{name} was not found")
        self.world.set_state(name, NodeState.DELETING)
        return self._began("delete", name)

    def _began(self, verb: str, target: str) -> CloudOperation:
        parent = ResourceName.parse(target).parent
        name = f"{parent}/operations/{len(self.world.operations)}"
        self.world.operations[name] = CloudOperation(name, done=False, target=target, verb=verb)
        self.world.after(f"{verb}_node", target)
        return self.world.operations[name]

    async def get_operation(self, name: str) -> CloudOperation:
        self._enter("get_operation", name)
        if name not in self.world.operations:
            return CloudOperation(name, done=True)
        current = self.world.operations[name]
        self.world.tick(name)
        return current

    async def list_requests(self, location: str = "-") -> RequestListing:
        self._enter("list_requests", location)
        return RequestListing(tuple(self.world.requests.values()))

    async def get_request(self, name: str) -> QueuedResource:
        self._enter("get_request", name)
        request = self.world.requests.get(name)
        if request is None:
            raise refusal(ErrorClass.GONE, f"{name} was not found")
        if request.state in WAITING_REQUEST_STATES and name in self.world.templates:
            self.world.serve(request)
        if request.state == RequestState.SUSPENDING:
            self.world.requests[name] = replace(request, state=RequestState.SUSPENDED)
        has_nodes = any(
            node in self.world.nodes and not self.world.nodes[node].is_dead
            for node in request.node_names
        )
        if request.state == RequestState.ACTIVE and not has_nodes:
            self.world.requests[name] = replace(request, state=RequestState.SUSPENDING)
        return request

    async def create_request(
        self, zone: str, request_id: str, template: RequestTemplate
    ) -> CloudOperation:
        name = request_name(PROJECT, zone, request_id)
        self._enter("create_request", name)
        if name in self.world.requests:
            raise refusal(ErrorClass.NAME_TAKEN, f"{name} already exists")
        self.world.requests[name] = QueuedResource(
            name=name,
            state=RequestState.ACCEPTED,
            create_time=self.world.clock.now(),
            node_names=(node_name(PROJECT, zone, template.node_id),),
            accelerator_type=template.node.accelerator_type,
            labels=dict(template.node.labels),
            metadata=dict(template.node.metadata),
        )
        self.world.templates[name] = template
        self.world.after("create_request", name)
        return CloudOperation(f"{name}/operation", done=True)

    async def delete_request(self, name: str, *, force: bool = False) -> CloudOperation:
        self._enter("delete_request", name)
        if name not in self.world.requests:
            raise refusal(ErrorClass.GONE, f"{name} was not found")
        if self.world.requests[name].state not in {
            RequestState.SUSPENDED,
            RequestState.FAILED,
            RequestState.ACCEPTED,
            RequestState.WAITING_FOR_RESOURCES,
        }:
            raise refusal(ErrorClass.BAD_REQUEST, "delete is not supported in this state")
        del self.world.requests[name]
        self.world.after("delete_request", name)
        return CloudOperation("op", done=True)

    async def list_zones(self) -> tuple[str, ...]:
        self._enter("list_zones", "")
        return (ZONE, OTHER_ZONE, "europe-west4-a")

    async def list_accelerator_types(self, zone: str) -> tuple[str, ...]:
        self._enter("list_accelerator_types", zone)
        return ("v2-8", "v2-32", "v5litepod-8") if zone != "europe-west4-a" else ("v3-8",)

    async def list_runtime_versions(self, zone: str) -> tuple[str, ...]:
        self._enter("list_runtime_versions", zone)
        return (
            "tpu-vm-tf-2.13.0",
            "tpu-vm-tf-2.17.1-pjrt",
            RUNTIME,
            "tpu-vm-tf-2.19.0-pod-pjrt",
            "v2-alpha-tpuv6e",
        )


class FakeBucket:
    """`BucketGateway` over a dictionary."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world

    def _enter(self, method: str, target: str) -> None:
        self.world.before(method, target)
        self.world.calls.append(f"{method} {target}")

    async def exists(self, url: str) -> bool:
        self._enter("exists", url)
        return url in self.world.buckets or any(
            one == url or one.startswith(f"{url}/") for one in self.world.files
        )

    async def read(self, url: str) -> bytes | None:
        self._enter("read", url)
        return self.world.files.get(url)

    async def write(self, url: str, data: bytes, *, only_if_absent: bool = False) -> bool:
        self._enter("write", url)
        if only_if_absent and url in self.world.files:
            return False
        self.world.files[url] = data
        self.world.after("write", url)
        return True

    async def location(self, url: str) -> str | None:
        self._enter("location", url)
        return self.world.bucket_location

    async def rename(self, url: str, new_url: str) -> None:
        self._enter("rename", url)
        self.world.files[new_url] = self.world.files.pop(url)

    async def list(self, url: str) -> tuple[str, ...]:
        self._enter("list", url)
        below = {
            f"{url}/{one.removeprefix(f'{url}/').split('/')[0]}"
            for one in self.world.files
            if one.startswith(f"{url}/")
        }
        return tuple(sorted(below))


class FakeConnection:
    """What gives the gateways."""

    def __init__(self, world: FakeWorld) -> None:
        unused = cast("Any", None)
        self._cloud = Cloud(
            project=PROJECT,
            tpu=FakeTpu(world),
            monitoring=unused,
            logging=unused,
            billing=unused,
            bucket=FakeBucket(world),
        )

    async def cloud(self) -> Cloud:
        return self._cloud
