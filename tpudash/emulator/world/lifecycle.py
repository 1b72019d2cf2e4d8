"""The life of a node: what each verb asks for, and what comes of it in time.

States and rules after `google/cloud/tpu/v2/cloud_tpu.proto` and the pages on preemption and
maintenance of https://cloud.google.com/tpu/docs.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf import empty_pb2
from google.rpc import code_pb2

from tpudash.emulator.errors import already_exists, invalid_field, make_status
from tpudash.emulator.messages import Message, NodeHealth, NodeState, state_name
from tpudash.emulator.world.blueprint import new_node, prepare_endpoints
from tpudash.emulator.world.events import HostEvents
from tpudash.emulator.world.host import HostError
from tpudash.emulator.world.nodes import NodeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tpudash.emulator.identifiers import ResourceName
    from tpudash.emulator.world.world import Deps

_Finish: TypeAlias = "Callable[[NodeRecord], Coroutine[Any, Any, tuple[Any, Any]]]"
"""Ends a verb and returns its response or its failing status, the other one None."""

_Verb: TypeAlias = "tuple[str, str, _Finish]"
"""A verb as operations call it, its RPC, and what ends it."""

_log = logging.getLogger(__name__)
PREEMPTIBLE_LIFE_S = 24 * 3600.0
_DELETABLE = frozenset(
    {
        NodeState.READY,
        NodeState.REPAIRING,
        NodeState.STOPPED,
        NodeState.PREEMPTED,
        NodeState.TERMINATED,
        NodeState.HIDDEN,
        NodeState.UNKNOWN,
    }
)
_UPDATABLE = frozenset({NodeState.READY, NodeState.STOPPED})
_UPDATE_FIELDS = frozenset(
    {"description", "tags", "labels", "metadata", "network_config.enable_external_ips"}
)


class NodeLifecycle:
    """Creates, changes and ends nodes; every verb returns its operation at once."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self.events = HostEvents(deps)

    # ---------------------------------------------------------------- verbs

    def admit(self, parent: ResourceName, node: Message) -> NodeRecord:
        """Check a new node and return it, not yet in the table.

        Raises:
            ApiError: The cloud refuses at the call.
        """
        deps = self._deps
        accelerator = deps.validator.check(parent.zone, parent.id, node)
        if str(parent) in deps.nodes:
            raise already_exists(str(parent))
        message = new_node(parent, node, accelerator, deps)
        record = NodeRecord(parent, message, accelerator)
        deps.quotas.check(record)
        return record

    def create(self, name: ResourceName, node: Message) -> Message:
        """Begin the creation of a node."""
        record = self.admit(name, node)
        self._deps.nodes.add(record)
        return self.bring_up(record)

    def bring_up(self, record: NodeRecord) -> Message:
        """Begin the creation of a node that is already in the table."""
        return self._begin(record, "create", "CreateNode", self._finish_create)

    def delete(self, name: str) -> Message:
        """Begin the deletion of a node."""
        record = self._deps.nodes.get(name)
        if record.state not in _DELETABLE:
            raise self._deps.refusals.wrong_state("delete", state_name(record.message))
        return self._begin(record, "delete", "DeleteNode", self._finish_delete, NodeState.DELETING)

    def stop(self, name: str) -> Message:
        """Begin to stop a single-host node."""
        record = self._deps.nodes.get(name)
        self._refuse_pod(record, "stop")
        if record.state != NodeState.READY:
            raise self._deps.refusals.wrong_state("stop", state_name(record.message))
        return self._begin(record, "stop", "StopNode", self._finish_stop, NodeState.STOPPING)

    def start(self, name: str) -> Message:
        """Begin to start a stopped single-host node; spot and preemptible ones stay down."""
        record = self._deps.nodes.get(name)
        self._refuse_pod(record, "start")
        if record.state != NodeState.STOPPED:
            raise self._deps.refusals.wrong_state("start", state_name(record.message))
        if record.preemptible:
            raise self._deps.refusals.bad_request(
                f"start is not supported for {record.scheduling} nodes"
            )
        return self._begin(record, "start", "StartNode", self._finish_start, NodeState.STARTING)

    def update(self, node: Message, mask: Any) -> Message:
        """Change the masked fields of a node."""
        record = self._deps.nodes.get(node.name)
        unknown = set(mask.paths) - _UPDATE_FIELDS
        if unknown or not mask.paths:
            listed = ", ".join(sorted(unknown)) or "nothing"
            raise invalid_field("update_mask", f"cannot update {listed}")
        if record.state not in _UPDATABLE:
            raise self._deps.refusals.wrong_state("update", state_name(record.message))
        self._deps.validator.check_texts(node)
        mask.MergeMessage(node, record.message, True, True)
        record.message.name = str(record.name)
        if "network_config.enable_external_ips" in mask.paths:
            prepare_endpoints(record)
        self._deps.nodes.save(record)
        self._deps.host.metadata_changed(str(record.name))
        return self._begin(record, "update", "UpdateNode", self._finish_update)

    def _refuse_pod(self, record: NodeRecord, verb: str) -> None:
        if record.accelerator.multi_host:
            raise self._deps.refusals.bad_request(
                f"{verb} is not supported for pod nodes such as {record.accelerator.name}"
            )

    # ------------------------------------------------------------ operations

    def _begin(
        self,
        record: NodeRecord,
        verb: str,
        method: str,
        finish: _Finish,
        meanwhile: int | None = None,
    ) -> Message:
        """Begin a verb; `meanwhile` is the node's state until it is done."""
        deps = self._deps
        target, former = str(record.name), record.state
        if meanwhile is not None:
            self._enter(record, meanwhile)
        operation = deps.operations.begin(record.name.parent, verb, target)
        deps.audit.operation_began(method, record.name.project, operation, target)
        self._run(record, operation, (verb, method, finish), former if meanwhile else None)
        return operation

    def _run(
        self, record: NodeRecord, operation: Message, what: _Verb, former: int | None = None
    ) -> None:
        verb, method, finish = what

        async def work() -> None:
            deps = self._deps
            status = await deps.faults.gate(verb, record.name.zone)
            response = None
            if status is None:
                response, status = await self._finish(record, verb, finish)
            elif verb == "create" and record.state == NodeState.CREATING:
                deps.nodes.remove(record)
            elif former is not None:
                self._enter(record, former)
            if status is not None:
                deps.operations.fail(operation, status)
            else:
                deps.operations.succeed(operation, response)
            deps.audit.operation_ended(method, record.name.project, operation, str(record.name))

        self._deps.tasks.start(work(), f"{verb} {record.name}")

    async def _finish(self, record: NodeRecord, verb: str, finish: _Finish) -> tuple[Any, Any]:
        """Carry a verb out; a machine that does not come up fails it."""
        try:
            return await finish(record)
        except HostError as error:
            await self._deps.host.stop(str(record.name), 0)
            if verb == "create":
                self._deps.nodes.remove(record)
            else:
                self._enter(record, NodeState.TERMINATED)
            text = f"The machine did not come up: {error}"
            return None, make_status(code_pb2.INTERNAL, text)
        except Exception:  # noqa: BLE001  (the edge of an operation's task)
            _log.exception("defect in %s of %s", verb, record.name)
            self._enter(record, NodeState.UNKNOWN)
            return None, make_status(code_pb2.INTERNAL, "Internal error")

    async def _finish_create(self, record: NodeRecord) -> tuple[Any, Any]:
        deps = self._deps
        if not deps.capacity.has_room(record):
            await deps.clock.sleep(deps.settings.create_s / 2)
            deps.nodes.remove(record)
            return None, self._no_room(record)
        await deps.clock.sleep(deps.settings.create_s)
        if record.state == NodeState.CREATING:
            prepare_endpoints(record)
            await deps.host.start(record)
        if record.state != NodeState.CREATING:
            await deps.host.stop(str(record.name), 0)
            refusal = deps.refusals.wrong_state("update", state_name(record.message))
            return None, refusal.status
        self._become_ready(record)
        return record.message, None

    def _no_room(self, record: NodeRecord) -> Any:
        if record.scheduling == "reserved":
            return self._deps.refusals.reservation_too_small().status
        return self._deps.refusals.stock_out(record.name.zone).status

    def _become_ready(self, record: NodeRecord) -> None:
        record.message.health = NodeHealth.HEALTHY
        record.message.health_description = ""
        record.maintenance = {}
        self._enter(record, NodeState.READY)
        if record.scheduling == "preemptible":
            self._deps.tasks.start(self._end_of_life(record), f"24 hours of {record.name}")

    async def _end_of_life(self, record: NodeRecord) -> None:
        """Terminate a preemptible node 24 hours after its creation."""
        created = record.message.create_time.ToDatetime(self._deps.clock.now().tzinfo)
        age = (self._deps.clock.now() - created).total_seconds()
        await self._deps.clock.sleep(max(0.0, PREEMPTIBLE_LIFE_S - age))
        if record.state == NodeState.READY:
            await self.events.terminate(record, "Preemptible node reached its 24 hour limit")

    async def _finish_delete(self, record: NodeRecord) -> tuple[Any, Any]:
        deps = self._deps
        name = str(record.name)
        await asyncio.gather(
            deps.clock.sleep(deps.settings.delete_s),
            deps.host.stop(name, deps.settings.delete_s),
        )
        deps.nodes.remove(record)
        deps.host.discard(name)
        return empty_pb2.Empty(), None

    async def _finish_stop(self, record: NodeRecord) -> tuple[Any, Any]:
        deps = self._deps
        await asyncio.gather(
            deps.clock.sleep(deps.settings.delete_s),
            deps.host.stop(str(record.name), deps.settings.delete_s),
        )
        self._enter(record, NodeState.STOPPED)
        return record.message, None

    async def _finish_start(self, record: NodeRecord) -> tuple[Any, Any]:
        deps = self._deps
        if not deps.capacity.has_room(record):
            self._enter(record, NodeState.STOPPED)
            return None, self._no_room(record)
        await deps.clock.sleep(deps.settings.create_s)
        await deps.host.start(record)
        self._become_ready(record)
        return record.message, None

    async def _finish_update(self, record: NodeRecord) -> tuple[Any, Any]:
        return record.message, None

    def _enter(self, record: NodeRecord, state: int) -> None:
        record.life += 1
        record.message.state = state
        self._deps.nodes.save(record)

    # --------------------------------------------------------------- restart

    def resume(self) -> None:
        """Take up the nodes of an earlier process: whoever lost its machine is TERMINATED."""
        finishers = {
            NodeState.CREATING: ("create", "CreateNode", self._finish_create),
            NodeState.DELETING: ("delete", "DeleteNode", self._finish_delete),
            NodeState.STOPPING: ("stop", "StopNode", self._finish_stop),
            NodeState.STARTING: ("start", "StartNode", self._finish_start),
        }
        for record in self._deps.nodes:
            if record.state in finishers:
                self._continue(record, *finishers[NodeState(record.state)])
            elif record.live and record.has_machine:
                self.events.lose_machine(record)
            elif record.state == NodeState.REPAIRING:
                self._become_ready(record)
            elif record.state == NodeState.READY and record.scheduling == "preemptible":
                self._deps.tasks.start(self._end_of_life(record), f"24 hours of {record.name}")
        self._fail_orphans()

    def _continue(self, record: NodeRecord, verb: str, method: str, finish: _Finish) -> None:
        operations = self._deps.operations
        operation = operations.unfinished(str(record.name))
        if operation is None:
            operation = operations.begin(record.name.parent, verb, str(record.name))
        former = {"delete": NodeState.READY, "stop": NodeState.READY, "start": NodeState.STOPPED}
        self._run(record, operation, (verb, method, finish), former.get(verb))

    def _fail_orphans(self) -> None:
        """End the operations whose work did not survive the restart."""
        transitional = {NodeState.CREATING, NodeState.DELETING}
        transitional |= {NodeState.STOPPING, NodeState.STARTING}
        busy = {str(node.name) for node in self._deps.nodes if node.state in transitional}
        for operation in self._deps.operations.all_unfinished():
            target = self._deps.operations.metadata(operation).target
            if "/nodes/" in target and target not in busy:
                status = make_status(code_pb2.ABORTED, "The service restarted.")
                self._deps.operations.fail(operation, status)
