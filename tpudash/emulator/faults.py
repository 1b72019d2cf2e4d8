"""The faults in force, consulted by every face and by the world."""

from __future__ import annotations

import asyncio
import fnmatch
import itertools
from typing import TYPE_CHECKING, Any

from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, ConnectionLostError
from tpudash.emulator.fault_rules import CONTROL_SERVICE, Fault, FaultKind, refusal
from tpudash.emulator.services.paging import encode_token

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tpudash.clock import Clock

_NEVER_S = 24 * 3600.0
_PAGED_BY_NAME = ("google.cloud.tpu.", "google.longrunning.", "google.cloud.location.")
"""Services whose page tokens hold the last name, so that one can point before the first."""


class Faults:
    """The rules in force.

    Args:
        clock: Time for waits and schedules.
        random: Decides where a rule has a probability.
    """

    def __init__(self, clock: Clock, random: random.Random) -> None:
        self._clock = clock
        self._random = random
        self._ids = itertools.count(1)
        self._changed = asyncio.Event()
        self.rules: list[Fault] = []
        self.listeners: list[Callable[[], None]] = []
        """Called when rules came or went."""

    def add(self, fault: Fault) -> Fault:
        """Put a rule in force and return it with its id."""
        fault.id = next(self._ids)
        fault.began = self._clock.monotonic()
        self.rules.append(fault)
        self._wake()
        return fault

    def clear(self, fault_id: int | None = None) -> int:
        """Take one rule out of force, or all of them; return how many."""
        before = len(self.rules)
        self.rules = [rule for rule in self.rules if fault_id is not None and rule.id != fault_id]
        self._wake()
        return before - len(self.rules)

    # ----------------------------------------------------------------- calls

    async def before(self, method: str, request: Any) -> None:
        """Act on a call that has arrived.

        Raises:
            ApiError: A rule refuses the call.
        """
        if method.startswith(CONTROL_SERVICE) or not self.rules:
            return
        zone = zone_of(request)
        if rule := self._take(FaultKind.LATENCY, method, zone):
            await self._clock.sleep(rule.latency_s)
        if self._take(FaultKind.BLACK_HOLE, method, zone):
            await self._clock.sleep(_NEVER_S)
        if self._take(FaultKind.LOST_REQUEST, method, zone):
            raise _lost()
        if zone in self.unreachable_zones():
            raise ApiError(code_pb2.UNAVAILABLE, f'The zone "{zone}" is currently unreachable.')
        if rule := self._take(FaultKind.ERROR, method, zone):
            raise refusal(rule)
        if hasattr(request, "page_size") and (
            rule := self._take(FaultKind.PARTIAL_PAGES, method, zone)
        ):
            limit = max(1, rule.page_size)
            request.page_size = min(request.page_size or limit, limit)

    def after(self, method: str, request: Any) -> None:
        """Act on a call that was carried out.

        Raises:
            ConnectionLostError: The answer is lost.
        """
        if method.startswith(CONTROL_SERVICE) or not self.rules:
            return
        if self._take(FaultKind.DROP, method, zone_of(request)):
            raise _lost()

    def shape(self, method: str, request: Any, response: Any) -> Any:
        """Return the answer as it goes out: an empty first page where a rule wants one."""
        if not self.rules or not method.startswith(_PAGED_BY_NAME):
            return response
        rule = self._find(FaultKind.PARTIAL_PAGES, method, zone_of(request))
        is_first = not getattr(request, "page_token", True)
        if rule is None or rule.page_size > 0 or not is_first:
            return response
        return type(response)(next_page_token=encode_token(""))

    # ----------------------------------------------------------------- world

    def unreachable_zones(self) -> list[str]:
        """Return the zones that do not answer."""
        return [rule.zone for rule in self.in_force(FaultKind.UNREACHABLE_ZONE)]

    def lag_s(self, method: str, zone: str) -> float:
        """Return how old the answer to a reading call shall be."""
        rule = self._take(FaultKind.STALE_READS, method, zone) if self.rules else None
        return rule.lag_s if rule is not None else 0.0

    def skew_s(self) -> float:
        """Return how far ahead the cloud's clock is."""
        return sum(rule.skew_s for rule in self.in_force(FaultKind.CLOCK_SKEW))

    def is_out_of_stock(self, zone: str, kinds: set[str]) -> bool:
        """Return whether a rule leaves a zone without chips of one of these types."""
        return any(
            fnmatch.fnmatchcase(zone, rule.zone)
            and any(fnmatch.fnmatchcase(kind, rule.accelerator_type) for kind in kinds)
            for rule in self.in_force(FaultKind.STOCK_OUT)
        )

    def in_force(self, kind: FaultKind) -> list[Fault]:
        """Return the rules of a kind that their schedules have in force."""
        if not self.rules:
            return []
        now = self._clock.monotonic()
        return [rule for rule in self.rules if rule.kind is kind and rule.is_due(now)]

    async def gate(self, verb: str, zone: str) -> Any:
        """Hold an operation while a rule wants it never to end, and return a failure or None."""
        while self._find(FaultKind.OPERATION_NEVER_ENDS, verb, zone):
            await self.wait_for_change()
        rule = self._take(FaultKind.OPERATION_FAILS, verb, zone)
        return rule.status if rule else None

    async def wait_for_change(self) -> None:
        """Return when rules came or went, or when a schedule brings or ends one."""
        now = self._clock.monotonic()
        moments = [rule.changes_in(now)[1] for rule in self.rules]
        next_s = min((moment for moment in moments if moment is not None), default=_NEVER_S)
        waiter = asyncio.ensure_future(self._changed.wait())
        timer = asyncio.ensure_future(self._clock.sleep(next_s))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            timer.cancel()

    def _find(self, kind: FaultKind, method: str, zone: str) -> Fault | None:
        return next((rule for rule in self.in_force(kind) if rule.concerns(method, zone)), None)

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
        for listener in self.listeners:
            listener()


def _lost() -> ConnectionLostError:
    return ConnectionLostError(code_pb2.UNAVAILABLE, "Connection reset by peer")


def zone_of(request: Any) -> str:
    """Return the zone that a request names, or the empty string."""
    for field in ("name", "parent"):
        parts = str(getattr(request, field, "")).split("/")
        if len(parts) >= 4 and parts[2] == "locations":
            return parts[3]
    node = getattr(request, "node", None)
    return zone_of(node) if node is not None and node is not request else ""
