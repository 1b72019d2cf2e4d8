"""Faults on request: latency, refusals, lost answers, silence, dead zones, broken operations."""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, make_status

if TYPE_CHECKING:
    import random

    from tpudash.clock import Clock

_NEVER_S = 24 * 3600.0
CONTROL_SERVICE = "tpudash.emulator.Control"


class FaultKind(StrEnum):
    """What a fault does."""

    LATENCY = "latency"
    """The call waits before it is answered."""

    ERROR = "error"
    """The call is refused with a status; nothing is done."""

    DROP = "drop"
    """The call is carried out and its answer is lost: UNAVAILABLE reaches the caller."""

    BLACK_HOLE = "black-hole"
    """The call is never answered and nothing is done."""

    UNREACHABLE_ZONE = "unreachable-zone"
    """Calls on the zone are refused, and wildcard lists report it as unreachable."""

    OPERATION_NEVER_ENDS = "operation-never-ends"
    OPERATION_FAILS = "operation-fails"


@dataclass(slots=True)
class Fault:
    """One rule; it ends when cleared or when its count is used up."""

    id: int
    kind: FaultKind
    method: str = "*"
    """Pattern over `service/Method`, or over the verb of an operation; `*` matches any text."""

    zone: str = "*"
    latency_s: float = 0.0
    probability: float = 1.0
    remaining: int | None = None
    """How many more times it acts; None means without end."""

    status: Any = None
    """A google.rpc.Status for the kinds that refuse."""


class Faults:
    """The rules in force, consulted by the transport's face and by operations."""

    def __init__(self, clock: Clock, random: random.Random) -> None:
        self._clock = clock
        self._random = random
        self._ids = itertools.count(1)
        self._changed = asyncio.Event()
        self.rules: list[Fault] = []

    def add(self, kind: FaultKind, **fields: Any) -> Fault:
        """Put a rule in force and return it."""
        fault = Fault(id=next(self._ids), kind=kind, **fields)
        if fault.status is None:
            fault.status = make_status(
                code_pb2.UNAVAILABLE, "The service is currently unavailable."
            )
        self.rules.append(fault)
        self._wake()
        return fault

    def clear(self, fault_id: int | None = None) -> int:
        """Take one rule out of force, or all of them; return how many."""
        before = len(self.rules)
        self.rules = [rule for rule in self.rules if fault_id is not None and rule.id != fault_id]
        self._wake()
        return before - len(self.rules)

    async def before(self, method: str, request: Any) -> None:
        """Act on a call that has arrived.

        Raises:
            ApiError: A rule refuses the call.
        """
        if method.startswith(CONTROL_SERVICE) or not self.rules:
            return
        zone = _zone_of(request)
        if rule := self._take(FaultKind.LATENCY, method, zone):
            await self._clock.sleep(rule.latency_s)
        if self._take(FaultKind.BLACK_HOLE, method, zone):
            await self._clock.sleep(_NEVER_S)
        if zone in self.unreachable_zones():
            raise ApiError(code_pb2.UNAVAILABLE, f'The zone "{zone}" is currently unreachable.')
        if rule := self._take(FaultKind.ERROR, method, zone):
            raise ApiError.of(rule.status)

    def after(self, method: str, request: Any) -> None:
        """Act on a call that was carried out.

        Raises:
            ApiError: The answer is lost.
        """
        if method.startswith(CONTROL_SERVICE) or not self.rules:
            return
        if self._take(FaultKind.DROP, method, _zone_of(request)):
            raise ApiError(code_pb2.UNAVAILABLE, "Connection reset by peer")

    def unreachable_zones(self) -> list[str]:
        """Return the zones that do not answer."""
        return [rule.zone for rule in self.rules if rule.kind is FaultKind.UNREACHABLE_ZONE]

    async def gate(self, verb: str, zone: str) -> Any:
        """Hold an operation while a rule wants it never to end, and return a failure or None."""
        while self._find(FaultKind.OPERATION_NEVER_ENDS, verb, zone):
            await self._changed.wait()
        rule = self._take(FaultKind.OPERATION_FAILS, verb, zone)
        return rule.status if rule else None

    def _find(self, kind: FaultKind, method: str, zone: str) -> Fault | None:
        for rule in self.rules:
            if (
                rule.kind is kind
                and fnmatch.fnmatchcase(method, rule.method)
                and fnmatch.fnmatchcase(zone, rule.zone)
                and rule.remaining != 0
            ):
                return rule
        return None

    def _take(self, kind: FaultKind, method: str, zone: str) -> Fault | None:
        rule = self._find(kind, method, zone)
        if rule is None or self._random.random() >= rule.probability:
            return None
        if rule.remaining is not None:
            rule.remaining -= 1
        self.rules = [item for item in self.rules if item.remaining != 0]
        return rule

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _zone_of(request: Any) -> str:
    """Return the zone that a request names, or the empty string."""
    for field in ("name", "parent"):
        parts = str(getattr(request, field, "")).split("/")
        if len(parts) >= 4 and parts[2] == "locations":
            return parts[3]
    node = getattr(request, "node", None)
    return _zone_of(node) if node is not None and node is not request else ""
