"""Queued resources: requests that wait for capacity and then make nodes.

States and the rules of deletion after `google/cloud/tpu/v2/cloud_tpu.proto`.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2
from google.rpc import code_pb2

from tpudash.emulator.errors import (
    ApiError,
    already_exists,
    invalid_field,
    make_status,
    not_found,
)
from tpudash.emulator.identifiers import ANY_ZONE, ResourceName
from tpudash.emulator.messages import (
    Message,
    Node,
    NodeState,
    QueuedResource,
    RequestState,
    StateInitiator,
)
from tpudash.emulator.world.windows import validity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from tpudash.emulator.world.lifecycle import NodeLifecycle
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import Deps

_KIND = "queued-resource"
_RETRY_S = 5.0
_DELETABLE = frozenset(
    {
        RequestState.ACCEPTED,
        RequestState.WAITING_FOR_RESOURCES,
        RequestState.FAILED,
        RequestState.SUSPENDED,
    }
)
_SERVING = frozenset({NodeState.CREATING, NodeState.READY, NodeState.REPAIRING})


@dataclass(slots=True)
class Request:
    """A queued resource and the nodes it has made."""

    name: ResourceName
    message: Message
    nodes: list[str] = field(default_factory=list)

    @property
    def state(self) -> int:
        """The request's state as a number of Google's enum."""
        return int(self.message.state.state)


class QueuedResources:
    """The queue of requests, and the tasks that serve it."""

    def __init__(self, deps: Deps, lifecycle: NodeLifecycle) -> None:
        self._deps = deps
        self._lifecycle = lifecycle
        self._table: dict[str, Request] = {}
        self.listeners: list[Callable[[str, Message | None], None]] = []
        """Called with each changed request's name, and with None once it is gone."""

        for name, value, extra in deps.state.load(_KIND):
            parsed = ResourceName.parse(name, "queuedResources")
            self._table[name] = Request(parsed, QueuedResource.FromString(value), json.loads(extra))
        deps.nodes.listeners.append(self._node_changed)

    # ---------------------------------------------------------------- verbs

    def get(self, name: str) -> Request:
        """Return a request.

        Raises:
            ApiError: NOT_FOUND, or INVALID_ARGUMENT for what is no name.
        """
        if name not in self._table:
            raise not_found(str(ResourceName.parse(name, "queuedResources")))
        return self._table[name]

    def messages(self) -> Iterator[tuple[str, Message]]:
        """Yield the name and the message of every request."""
        for name, request in self._table.items():
            yield name, request.message

    def under(self, project: str, zone: str) -> Iterator[Request]:
        """Yield the requests of a zone in name order; the zone `-` means all."""
        for name in sorted(self._table):
            request = self._table[name]
            if request.name.project == project and zone in {ANY_ZONE, request.name.zone}:
                yield request

    def create(self, name: ResourceName, wanted: Message) -> Message:
        """Put a request into the queue."""
        deps = self._deps
        deps.validator.check_id("queued_resource_id", name.id)
        deps.validator.check_zone(name.zone)
        if str(name) in self._table:
            raise already_exists(str(name))
        message = QueuedResource()
        message.CopyFrom(wanted)
        message.name = str(name)
        message.create_time.FromDatetime(deps.clock.now())
        request = Request(name, message)
        self._admit(request)
        self._table[str(name)] = request
        self._enter(request, RequestState.ACCEPTED)
        operation = deps.operations.begin(name.parent, "create", str(name))
        deps.operations.succeed(operation, message)
        deps.tasks.start(self._serve(request), f"queue {name}")
        return operation

    def delete(self, name: str, *, force: bool) -> Message:
        """Take a request out of the queue; with force its nodes are deleted before it."""
        request = self.get(name)
        deps = self._deps
        if request.state == RequestState.DELETING:
            raise deps.refusals.wrong_state("delete", "DELETING")
        alive = [node for node in request.nodes if node in deps.nodes]
        if alive and not force and request.state not in _DELETABLE:
            state = RequestState(request.state).name
            raise deps.refusals.bad_request(
                f"delete is not supported while in state {state}: its nodes must be deleted first,"
                " or force must be set"
            )
        self._enter(request, RequestState.DELETING, StateInitiator.USER)
        operation = deps.operations.begin(request.name.parent, "delete", name)
        deps.tasks.start(self._finish_delete(request, operation), f"delete {name}")
        return operation

    def reset(self, name: str) -> Message:
        """Put a suspended or failed request back into the queue, once its nodes are gone."""
        request = self.get(name)
        deps = self._deps
        if request.state not in {RequestState.SUSPENDED, RequestState.FAILED}:
            raise deps.refusals.wrong_state("reset", RequestState(request.state).name)
        operation = deps.operations.begin(request.name.parent, "reset", name)
        deps.tasks.start(self._finish_reset(request, operation), f"reset {name}")
        return operation

    # --------------------------------------------------------------- service

    def _admit(self, request: Request) -> list[NodeRecord]:
        """Return the nodes that a request asks for, checked and not yet in the table."""
        if not request.message.tpu.node_spec:
            raise invalid_field("queued_resource.tpu.node_spec", "required")
        records = []
        for spec in request.message.tpu.node_spec:
            parent = spec.parent or request.name.parent
            if parent.split("/")[-1] != request.name.zone:
                raise invalid_field("node_spec.parent", "must be the zone of the request")
            ids = [spec.node_id]
            count = spec.multislice_params.node_count
            if count:
                prefix = spec.multislice_params.node_id_prefix or request.name.id
                ids = [f"{prefix}-{index}" for index in range(count)]
            for node_id in ids:
                node = Node()
                node.CopyFrom(spec.node)
                node.scheduling_config.spot |= request.message.HasField("spot")
                node.scheduling_config.reserved |= bool(request.message.reservation_name)
                name = ResourceName(request.name.project, request.name.zone, "nodes", node_id)
                record = self._lifecycle.admit(name, node)
                record.message.queued_resource = str(request.name)
                if count:
                    record.message.multislice_node = True
                records.append(record)
        return records

    async def _serve(self, request: Request) -> None:
        deps = self._deps
        start, end = validity_of(request.message, deps.clock.now())
        delay = max(0.0, (start - deps.clock.now()).total_seconds())
        await deps.clock.sleep(delay or deps.settings.create_s / 3)
        if request.state != RequestState.ACCEPTED:
            return
        self._enter(request, RequestState.WAITING_FOR_RESOURCES)
        while request.state == RequestState.WAITING_FOR_RESOURCES:
            if end is not None and deps.clock.now() >= end:
                text = "The queued resource's validity interval ended before capacity was found."
                self._fail(request, make_status(code_pb2.DEADLINE_EXCEEDED, text))
                return
            status = await deps.faults.gate("create", request.name.zone)
            if status is not None:
                self._fail(request, status)
                return
            if self._provision(request):
                return
            await self._wait_for_room(end)

    async def _wait_for_room(self, end: datetime | None) -> None:
        """Wait for a change of capacity or of the faults, or for the request's end."""
        deps = self._deps
        left_s = _RETRY_S if end is None else (end - deps.clock.now()).total_seconds()
        waits = {
            asyncio.ensure_future(deps.capacity.wait_for_change()),
            asyncio.ensure_future(deps.faults.wait_for_change()),
            asyncio.ensure_future(deps.clock.sleep(max(0.0, min(_RETRY_S, left_s)))),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _provision(self, request: Request) -> bool:
        """Start the nodes if there is room for all of them; return whether waiting is over."""
        deps = self._deps
        try:
            records = self._admit(request)
        except ApiError as error:
            self._fail(request, error.status)
            return True
        added: list[NodeRecord] = []
        for record in records:
            if not deps.capacity.has_room(record):
                for other in added:
                    deps.nodes.remove(other)
                return False
            deps.nodes.add(record)
            added.append(record)
        request.nodes = [str(record.name) for record in records]
        self._enter(request, RequestState.PROVISIONING)
        for record in records:
            self._lifecycle.bring_up(record)
        return True

    def _node_changed(self, record: NodeRecord) -> None:
        request = self._table.get(record.message.queued_resource)
        if request is None or str(record.name) not in request.nodes:
            return
        states = [
            self._deps.nodes.get(name).state if name in self._deps.nodes else None
            for name in request.nodes
        ]
        if request.state == RequestState.PROVISIONING and all(
            state == NodeState.READY for state in states
        ):
            self._enter(request, RequestState.ACTIVE)
        elif request.state in {RequestState.PROVISIONING, RequestState.ACTIVE} and not any(
            state in _SERVING for state in states
        ):
            self._enter(request, RequestState.SUSPENDING)
            self._deps.tasks.start(self._suspend(request), f"suspend {request.name}")

    async def _suspend(self, request: Request) -> None:
        await self._deps.clock.sleep(self._deps.settings.delete_s)
        if request.state == RequestState.SUSPENDING:
            self._enter(request, RequestState.SUSPENDED)

    async def _finish_delete(self, request: Request, operation: Message) -> None:
        await self._delete_nodes(request)
        await self._deps.clock.sleep(self._deps.settings.delete_s / 2)
        self._table.pop(str(request.name), None)
        self._deps.state.remove(_KIND, str(request.name))
        self._tell(request, None)
        self._deps.operations.succeed(operation, empty_pb2.Empty())

    async def _finish_reset(self, request: Request, operation: Message) -> None:
        await self._delete_nodes(request)
        request.nodes = []
        self._enter(request, RequestState.ACCEPTED, StateInitiator.USER)
        self._deps.operations.succeed(operation, request.message)
        await self._serve(request)

    async def _delete_nodes(self, request: Request) -> None:
        """Delete what is left of a request's nodes and wait until they are gone."""
        deps = self._deps
        while alive := [name for name in request.nodes if name in deps.nodes]:
            changed = asyncio.ensure_future(deps.capacity.wait_for_change())
            for name in alive:
                try:
                    self._lifecycle.delete(name)
                except ApiError:
                    continue  # being created or deleted: its next change is awaited
            await changed

    def resume(self) -> None:
        """Take up the requests of an earlier process."""
        for request in list(self._table.values()):
            if request.state == RequestState.WAITING_FOR_RESOURCES:
                self._enter(request, RequestState.ACCEPTED)
            if request.state == RequestState.ACCEPTED:
                self._deps.tasks.start(self._serve(request), f"queue {request.name}")
            elif request.state == RequestState.DELETING:
                parent, name = request.name.parent, str(request.name)
                operation = self._deps.operations.unfinished(name)
                operation = operation or self._deps.operations.begin(parent, "delete", name)
                self._deps.tasks.start(self._finish_delete(request, operation), f"delete {name}")
            elif request.state == RequestState.SUSPENDING:
                self._deps.tasks.start(self._suspend(request), f"suspend {request.name}")

    def _fail(self, request: Request, status: Any) -> None:
        self._enter(request, RequestState.FAILED)
        request.message.state.failed_data.error.CopyFrom(status)
        self._save(request)

    def _enter(self, request: Request, state: int, initiator: int = StateInitiator.SERVICE) -> None:
        """Change the state; each state has a data message of its own."""
        message = request.message.state
        message.Clear()
        message.state = state
        message.state_initiator = initiator
        data = f"{RequestState(state).name.lower()}_data"
        if data in message.DESCRIPTOR.fields_by_name:
            getattr(message, data).SetInParent()
        self._save(request)

    def _save(self, request: Request) -> None:
        value = request.message.SerializeToString()
        self._deps.state.put(_KIND, str(request.name), value, json.dumps(request.nodes))
        self._tell(request, request.message)

    def _tell(self, request: Request, message: Message | None) -> None:
        for listener in self.listeners:
            listener(str(request.name), message)
