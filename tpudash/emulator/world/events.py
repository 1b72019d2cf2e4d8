"""What happens to nodes without anyone asking: preemption, maintenance, loss of the machine."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from tpudash.emulator.errors import failed_precondition
from tpudash.emulator.messages import NodeHealth, NodeState, state_name
from tpudash.emulator.world.host import HostError
from tpudash.emulator.world.series import interruption_point

if TYPE_CHECKING:
    from tpudash.emulator.world.nodes import NodeRecord
    from tpudash.emulator.world.world import Deps

_TERMINATION_NOTICE_S = 30.0
_MAINTENANCE_KEY = "maintenance-event"
_OUTCOMES = {
    "READY": NodeState.READY,
    "UNKNOWN": NodeState.UNKNOWN,
    "TERMINATED": NodeState.TERMINATED,
}


class HostEvents:
    """Events of the machines under the nodes."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._hurried: dict[str, asyncio.Event] = {}

    async def preempt(self, record: NodeRecord, notice_s: float) -> None:
        """Take a spot or preemptible node back; returns when it is PREEMPTED or otherwise gone.

        A node that is still being created is taken at once, and its operation fails.

        Raises:
            ApiError: FAILED_PRECONDITION for other nodes and other states.
        """
        deps = self._deps
        if not record.preemptible:
            raise failed_precondition(
                f"{record.name.id} is {record.scheduling}: "
                "only spot and preemptible nodes are preempted"
            )
        if record.state not in {NodeState.READY, NodeState.CREATING}:
            raise deps.refusals.wrong_state("preempt", state_name(record.message))
        life, name = record.life, str(record.name)
        deps.audit.instance_event(record, "compute.instances.preempted")
        if record.state == NodeState.READY:
            deps.host.announce(name, "preempted", "TRUE")
            await deps.host.stop(name, notice_s)
        if record.life != life:
            return
        self._settle(record, NodeState.PREEMPTED)
        deps.audit.terminated(record, "PREEMPTED")
        deps.series.write(interruption_point(record, "Eviction", deps.clock.now()))

    async def terminate(self, record: NodeRecord, reason: str) -> None:
        """End a node's machine for good; the node stays listed as TERMINATED."""
        deps = self._deps
        life, name = record.life, str(record.name)
        deps.host.announce(name, "preempted", "TRUE")
        await deps.host.stop(name, _TERMINATION_NOTICE_S)
        if record.life != life:
            return
        record.message.health_description = reason
        self._settle(record, NodeState.TERMINATED)
        deps.audit.terminated(record, reason)

    def lose_machine(self, record: NodeRecord) -> None:
        """Note that a node's processes are gone without anyone having asked for it."""
        reason = "The machine was lost"
        record.message.health_description = reason
        record.maintenance = {}
        self._settle(record, NodeState.TERMINATED)
        self._deps.audit.instance_event(record, "compute.instances.hostError")
        self._deps.audit.terminated(record, "HOST_ERROR")

    async def maintain(
        self, record: NodeRecord, *, notice_s: float, duration_s: float, outcome: str
    ) -> None:
        """Announce maintenance, take the machine down, and bring it back or not.

        Args:
            record: A READY node.
            notice_s: Seconds between the announcement and the window.
            duration_s: Seconds in REPAIRING.
            outcome: The state after it: READY, UNKNOWN or TERMINATED.

        Raises:
            ApiError: The node is not READY, or the outcome is none of these.
        """
        deps = self._deps
        if record.state != NodeState.READY:
            raise deps.refusals.wrong_state("maintenance", state_name(record.message))
        if outcome not in _OUTCOMES:
            raise failed_precondition(f"outcome must be one of {', '.join(_OUTCOMES)}")
        life, name = record.life, str(record.name)
        self._announce_window(record, notice_s, duration_s)
        await self._notice(name, notice_s)
        if record.life != life:
            return
        record.maintenance["maintenance_status"] = "ONGOING"
        deps.audit.instance_event(record, "compute.instances.terminateOnHostMaintenance")
        record.message.health = NodeHealth.UNHEALTHY_MAINTENANCE
        record.message.health_description = "The host is under maintenance"
        self._settle(record, NodeState.REPAIRING)
        deps.series.write(interruption_point(record, "HW/SW Maintenance", deps.clock.now()))
        life = record.life
        await deps.host.stop(name, min(_TERMINATION_NOTICE_S, duration_s))
        await deps.clock.sleep(duration_s)
        if record.life == life:
            await self._leave_maintenance(record, outcome)

    async def _notice(self, name: str, notice_s: float) -> None:
        """Wait until the window begins, or until someone wants it to."""
        hurried = self._hurried[name] = asyncio.Event()
        waiter = asyncio.ensure_future(hurried.wait())
        timer = asyncio.ensure_future(self._deps.clock.sleep(notice_s))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hurried.pop(name, None)
            waiter.cancel()
            timer.cancel()

    async def hurry(self, record: NodeRecord) -> None:
        """Begin the announced maintenance now; returns when it is over.

        Raises:
            ApiError: FAILED_PRECONDITION when no window is waited for any more.
        """
        hurried = self._hurried.get(str(record.name))
        if hurried is None:
            raise failed_precondition(f"The node {record.name.id} has no pending maintenance")
        hurried.set()
        while record.maintenance and self._deps.nodes.holds(record):
            await self._deps.capacity.wait_for_change()

    def _announce_window(self, record: NodeRecord, notice_s: float, duration_s: float) -> None:
        start = self._deps.clock.now() + timedelta(seconds=notice_s)
        end = start + timedelta(seconds=duration_s)
        record.maintenance = {
            "type": "SCHEDULED" if notice_s >= 3600 else "UNSCHEDULED",
            "maintenance_status": "PENDING",
            "window_start_time": start.isoformat().replace("+00:00", "Z"),
            "window_end_time": end.isoformat().replace("+00:00", "Z"),
            "can_reschedule": "TRUE",
        }
        self._deps.nodes.save(record)
        self._deps.host.announce(
            str(record.name), _MAINTENANCE_KEY, "TERMINATE_ON_HOST_MAINTENANCE"
        )

    async def _leave_maintenance(self, record: NodeRecord, outcome: str) -> None:
        deps = self._deps
        record.maintenance = {}
        if outcome == "TERMINATED":
            deps.audit.terminated(record, "HOST_MAINTENANCE")
        if outcome == "READY":
            try:
                await deps.host.start(record)
            except HostError as error:
                record.message.health_description = f"The repair failed: {error}"
                outcome = "UNKNOWN"
            else:
                record.message.health = NodeHealth.HEALTHY
                record.message.health_description = ""
        self._settle(record, _OUTCOMES[outcome])

    def _settle(self, record: NodeRecord, state: int) -> None:
        record.life += 1
        record.message.state = state
        self._deps.nodes.save(record)
