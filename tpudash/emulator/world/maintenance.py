"""Maintenance that someone asks for: the verbs of v2alpha1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, failed_precondition, make_status
from tpudash.emulator.messages import Message, NodeState, state_name

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from tpudash.emulator.world.events import HostEvents
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import Deps


class Maintenance:
    """Begins maintenance of nodes; each verb returns its operation at once."""

    def __init__(self, deps: Deps, events: HostEvents) -> None:
        self._deps = deps
        self._events = events

    def simulate(self, name: str) -> Message:
        """Have the host of a READY node announce and carry out maintenance.

        Raises:
            ApiError: The node is not READY.
        """
        deps = self._deps
        record = deps.nodes.get(name)
        if record.state != NodeState.READY:
            state = state_name(record.message)
            raise deps.refusals.wrong_state("simulateMaintenanceEvent", state)
        work = self._events.maintain(
            record,
            notice_s=deps.settings.delete_s,
            duration_s=deps.settings.create_s,
            outcome="READY",
        )
        return self._begin(record, "simulateMaintenanceEvent", work)

    def perform(self, name: str) -> Message:
        """Begin the announced maintenance of a node now.

        Raises:
            ApiError: Nothing is announced.
        """
        record = self._deps.nodes.get(name)
        if record.maintenance.get("maintenance_status") != "PENDING":
            raise failed_precondition(f"The node {record.name.id} has no pending maintenance")
        return self._begin(record, "performMaintenance", self._events.hurry(record))

    def _begin(self, record: NodeRecord, verb: str, work: Coroutine[Any, Any, None]) -> Message:
        deps = self._deps
        operation = deps.operations.begin(record.name.parent, verb, str(record.name))

        async def run() -> None:
            status = await deps.faults.gate(verb, record.name.zone)
            if status is not None:
                work.close()
                deps.operations.fail(operation, status)
                return
            try:
                await work
            except ApiError as error:
                deps.operations.fail(operation, error.status)
            except Exception:
                deps.operations.fail(operation, make_status(code_pb2.INTERNAL, "Internal error"))
                raise
            else:
                deps.operations.succeed(operation, record.message)

        deps.tasks.start(run(), f"{verb} {record.name}")
        return operation
