"""The emulator's own service, by which tests and `tpudash emulator ...` steer it.

`/tpudash.emulator.Control/<Method>`, google.protobuf.Struct in and out; keys are snake_case.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, struct_pb2

from tpudash.emulator.errors import invalid_argument
from tpudash.emulator.fault_rules import CONTROL_SERVICE, parse_fault, shown_fault
from tpudash.emulator.messages import state_name
from tpudash.emulator.rpc import Call, Method, Service
from tpudash.emulator.world.limits import RESERVED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tpudash.emulator.emulator import Emulator

Answer = dict[str, Any]
_FIRST_TURN_S = 0.01


class ControlService:
    """Answers for the control service."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    @property
    def _world(self) -> Any:
        return self._emulator.world

    def table(self) -> Service:
        """Return the service with all its methods."""
        functions = {
            "Describe": self.describe,
            "Preempt": self.preempt,
            "Maintenance": self.maintenance,
            "SetCapacity": self.set_capacity,
            "SetQuota": self.set_quota,
            "Fault": self.fault,
            "ListFaults": self.list_faults,
            "ClearFaults": self.clear_faults,
            "Counters": self.counters,
            "PublishMetrics": self.publish_metrics,
            "Shutdown": self.shutdown,
        }
        struct = struct_pb2.Struct
        methods = [
            Method(name, struct, struct, _adapted(function)) for name, function in functions.items()
        ]
        return Service(CONTROL_SERVICE, tuple(methods))

    async def describe(self, _: Answer) -> Answer:
        """Return the emulator's settings, its nodes and what limits them."""
        world = self._world
        settings = self._emulator.settings
        nodes = [
            {
                "name": str(record.name),
                "state": state_name(record.message),
                "accelerator_type": record.accelerator.name,
                "scheduling": record.scheduling,
                "maintenance": dict(record.maintenance),
                "workers": [self._worker(worker) for worker in self._workers_of(record)],
            }
            for record in world.nodes
        ]
        return {
            **self._emulator.description(),
            "metrics_period_s": settings.metrics_period_s,
            "metrics_latency_s": settings.metrics_latency_s,
            "nodes": nodes,
            "capacity": [
                {"zone": zone, "kind": kind, "chips": chips}
                for (zone, kind), chips in world.capacity.limits.items()
            ],
            "quotas": [
                {"place": place, "name": name, "limit": limit}
                for (place, name), limit in world.quotas.limits.items()
            ],
            "faults": [shown_fault(rule) for rule in world.faults.rules],
            "log_entries": len(world.logs),
        }

    def _workers_of(self, record: Any) -> list[Any]:
        return self._emulator.host.workers_of(str(record.name))

    @staticmethod
    def _worker(worker: Any) -> Answer:
        return {
            "directory": str(worker.directory),
            "console": str(worker.directory / "console.log"),
            "metadata_port": worker.metadata.port,
            "pids": [process.pid for process in worker.processes()],
        }

    async def preempt(self, request: Answer) -> Answer:
        """Preempt a node: `node`, `notice_s` (30), `wait` (true)."""
        record = self._world.nodes.find(str(request.get("node", "")))
        work = self._world.lifecycle.events.preempt(record, _number(request, "notice_s", 30.0))
        return await self._carry_out(work, record, request)

    async def maintenance(self, request: Answer) -> Answer:
        """Maintain a node: `node`, `notice_s`, `duration_s`, `outcome`, `wait`."""
        record = self._world.nodes.find(str(request.get("node", "")))
        work = self._world.lifecycle.events.maintain(
            record,
            notice_s=_number(request, "notice_s", 0.0),
            duration_s=_number(request, "duration_s", 10.0),
            outcome=str(request.get("outcome", "READY")),
        )
        return await self._carry_out(work, record, request)

    async def _carry_out(self, work: Any, record: Any, request: Answer) -> Answer:
        """Run work that outlives the call, and wait for it unless told otherwise.

        A refusal comes before the work's first wait, so even who does not wait is told of it.
        """
        task = self._world.tasks.start(work, f"event on {record.name}")
        if request.get("wait", True):
            await asyncio.shield(task)
        else:
            await asyncio.wait({task}, timeout=_FIRST_TURN_S)
            if task.done():
                task.result()
        gone = str(record.name) not in self._world.nodes
        return {"node": str(record.name), "state": None if gone else state_name(record.message)}

    async def set_capacity(self, request: Answer) -> Answer:
        """Limit the chips of a zone: `zone`, `accelerator_type`, `chips` or null.

        Instead of a type there may be a generation, or `reserved:` and a type.
        """
        world = self._world
        zone, kind = str(request.get("zone", "")), str(request.get("accelerator_type", ""))
        known = {*world.catalogue.accelerators, *world.catalogue.generations}
        if zone not in world.catalogue.zones or kind.removeprefix(RESERVED) not in known:
            raise invalid_argument(f'unknown zone "{zone}" or accelerator type "{kind}"')
        world.capacity.set(zone, kind, _limit(request, "chips"))
        return {}

    async def set_quota(self, request: Answer) -> Answer:
        """Limit a project's use: `place` (zone or region), `name` of the limit, `limit|null`."""
        place, name = str(request.get("place", "")), str(request.get("name", ""))
        if not place or not name:
            raise invalid_argument("place and name are required")
        self._world.quotas.set(place, name, _limit(request, "limit"))
        return {}

    async def fault(self, request: Answer) -> Answer:
        """Put a fault in force.

        `kind`, and as the kind needs them `method` (pattern), `zone`, `probability`, `count`,
        `after_s`, `for_s`, `every_s`, `latency_s`, `code` (name of a status code, or an HTTP
        status), `message`, `details` (messages as JSON with @type), `page_size`, `lag_s`,
        `skew_s`, `accelerator_type`, `rate_per_hour`, `notice_s`, `seed`.
        """
        return shown_fault(self._world.faults.add(parse_fault(request)))

    async def list_faults(self, _: Answer) -> Answer:
        """Return the faults in force."""
        return {"faults": [shown_fault(rule) for rule in self._world.faults.rules]}

    async def clear_faults(self, request: Answer) -> Answer:
        """Take fault number `id` out of force, or all."""
        fault_id = request.get("id")
        cleared = self._world.faults.clear(None if fault_id is None else int(fault_id))
        return {"cleared": cleared}

    async def counters(self, request: Answer) -> Answer:
        """Return the calls per full method name; with `reset` start again at zero."""
        counters = self._emulator.counters
        answer = {
            "mutating": dict(counters.mutating),
            "reading": {
                method: count
                for method, count in counters.reading.items()
                if not method.startswith(CONTROL_SERVICE)
            },
        }
        if request.get("reset"):
            counters.reset()
        return answer

    async def publish_metrics(self, _: Answer) -> Answer:
        """Sample and publish all metrics now, whatever the period."""
        await self._emulator.telemetry.publish()
        return {}

    async def shutdown(self, _: Answer) -> Answer:
        """Ask the emulator to end."""
        self._emulator.stopping.set()
        return {}


def _adapted(function: Callable[[Answer], Awaitable[Answer]]) -> Callable[[Any, Call], Any]:
    async def answer(request: Any, _: Call) -> Any:
        response = struct_pb2.Struct()
        response.update(await function(json_format.MessageToDict(request)))
        return response

    return answer


def _number(request: Answer, key: str, default: float) -> float:
    value = request.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise invalid_argument(f"{key} must be a number that is not negative")
    return float(value)


def _limit(request: Answer, key: str) -> int | None:
    return None if request.get(key) is None else int(_number(request, key, 0))
