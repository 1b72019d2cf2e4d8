"""The client of a local emulator's control service: what no cloud lets anyone do.

`/tpudash.emulator.Control/<Method>` on the emulator's one port, google.protobuf.Struct in and out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
from google.protobuf import json_format, struct_pb2

from tpudash.errors import (
    NotFoundError,
    OperationFailedError,
    OutcomeUnknownError,
    TpudashError,
    UnreachableError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

SERVICE = "tpudash.emulator.Control"
_CALL_S = 5.0
_MARGIN_S = 30.0
_UNDECIDED = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
_REFUSED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}


class EmulatorControl:
    """Steers one emulator; an async context manager that owns its channel.

    Args:
        endpoint: HOST:PORT of the emulator.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._channel = grpc.aio.insecure_channel(endpoint)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close(None)

    async def call(
        self, method: str, request: Mapping[str, Any] | None = None, *, timeout_s: float = _CALL_S
    ) -> dict[str, Any]:
        """Call a method of the control service by its name.

        Raises:
            NotFoundError: What the request names does not exist.
            UsageError: The emulator refuses the request.
            UnreachableError: No emulator answers at the endpoint.
            OutcomeUnknownError: No answer came in time.
            OperationFailedError: Anything else.
        """
        message = struct_pb2.Struct()
        message.update(dict(request or {}))
        rpc = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=struct_pb2.Struct.SerializeToString,
            response_deserializer=struct_pb2.Struct.FromString,
        )
        try:
            response = await rpc(message, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise self._translated(error, method) from error
        answer: dict[str, Any] = json_format.MessageToDict(response)
        return answer

    def _translated(self, error: grpc.aio.AioRpcError, method: str) -> TpudashError:
        code, text = error.code(), error.details() or ""
        if code is grpc.StatusCode.NOT_FOUND:
            return NotFoundError(text, hint="see: tpudash nodes")
        if code in _REFUSED:
            return UsageError(text)
        if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED}:
            return UnreachableError(
                f"no emulator answers at {self._endpoint}",
                detail=text,
                hint="start one with: tpudash emulator serve",
            )
        if code in _UNDECIDED:
            return OutcomeUnknownError(f"the emulator did not answer {method} in time")
        return OperationFailedError(f"the emulator failed to {method}", detail=text)

    async def describe(self) -> dict[str, Any]:
        """Return the emulator's settings, nodes, limits and faults."""
        return await self.call("Describe")

    async def preempt(self, node: str, notice_s: float = 30.0, *, wait: bool = True) -> str | None:
        """Preempt a spot or preemptible node.

        Args:
            node: Full name, or an id that only one node has.
            notice_s: Seconds between SIGTERM and SIGKILL.
            wait: Whether to return only when the node is PREEMPTED.

        Returns:
            The node's state afterwards, None if it is gone.
        """
        request = {"node": node, "notice_s": notice_s, "wait": wait}
        answer = await self.call("Preempt", request, timeout_s=notice_s + _MARGIN_S)
        return answer.get("state")

    async def maintenance(
        self,
        node: str,
        *,
        notice_s: float = 0.0,
        duration_s: float = 10.0,
        outcome: str = "READY",
        wait: bool = True,
    ) -> str | None:
        """Announce and carry out maintenance of a READY node; return its state afterwards."""
        request = {
            "node": node,
            "notice_s": notice_s,
            "duration_s": duration_s,
            "outcome": outcome,
            "wait": wait,
        }
        timeout_s = notice_s + 2 * duration_s + _MARGIN_S
        answer = await self.call("Maintenance", request, timeout_s=timeout_s)
        return answer.get("state")

    async def set_capacity(self, zone: str, accelerator_type: str, chips: int | None) -> None:
        """Limit the chips of a type or generation in a zone, in use or free; None lifts it."""
        request = {"zone": zone, "accelerator_type": accelerator_type, "chips": chips}
        await self.call("SetCapacity", request)

    async def set_quota(self, place: str, name: str, limit: int | None) -> None:
        """Set a quota of a zone or region by Google's name of the limit; None lifts it."""
        await self.call("SetQuota", {"place": place, "name": name, "limit": limit})

    async def add_fault(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Put a fault in force and return it with its `id`.

        Args:
            kind: latency, error, drop, lost-request, black-hole, partial-pages, unreachable-zone,
                stale-reads, clock-skew, operation-never-ends, operation-fails, stock-out,
                preemption-storm, or an HTTP status.
            **fields: method, zone, probability, count, after_s, for_s, every_s, latency_s, code,
                message, details, page_size, lag_s, skew_s, accelerator_type, rate_per_hour,
                notice_s, seed.
        """
        return await self.call("Fault", {"kind": kind, **fields})

    async def list_faults(self) -> list[dict[str, Any]]:
        """Return the faults in force."""
        faults: list[dict[str, Any]] = (await self.call("ListFaults")).get("faults", [])
        return faults

    async def clear_faults(self, fault_id: int | None = None) -> int:
        """Take one fault or all out of force; return how many."""
        answer = await self.call("ClearFaults", {"id": fault_id})
        return int(answer["cleared"])

    async def counters(self, *, reset: bool = False) -> dict[str, int]:
        """Return the calls that change resources, by full method name."""
        answer = await self.call("Counters", {"reset": reset})
        return {method: int(count) for method, count in answer["mutating"].items()}

    async def publish_metrics(self) -> None:
        """Have all metrics sampled and published now."""
        await self.call("PublishMetrics")

    async def shutdown(self) -> None:
        """Ask the emulator to end."""
        await self.call("Shutdown")
