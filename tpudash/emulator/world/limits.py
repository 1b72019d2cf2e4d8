"""Capacity and quotas: two different reasons for code 8.

A quota refuses the call at once and says so in a QuotaFailure. A lack of chips ends the
operation later. Both are unlimited until set.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from tpudash.emulator.errors import quota_exceeded
from tpudash.emulator.identifiers import project_number, region_of

if TYPE_CHECKING:
    from tpudash.emulator.catalogue import Accelerator, Catalogue
    from tpudash.emulator.faults import Faults
    from tpudash.emulator.world.nodes import NodeRecord, Nodes
    from tpudash.emulator.world.state_file import StateFile

RESERVED = "reserved:"
_CAPACITY = "capacity"
_QUOTA = "quota"
_FAMILIES = {"v2": "TPUV2s", "v3": "TPUV3s", "v4": "TPUV4s", "v5e": "TPUV5s"}


def quota_name(accelerator: Accelerator, *, preemptible: bool, per: str) -> str:
    """Return Google's name of the limit that counts a slice.

    Args:
        accelerator: The slice's type.
        preemptible: Whether it is spot or preemptible.
        per: `Zone` or `Region`.
    """
    family = _FAMILIES.get(accelerator.generation, f"TPU{accelerator.generation.upper()}")
    kind = "Preemptible" if preemptible else ""
    if accelerator.generation == "v5e":
        kind += "Litepod" if accelerator.multi_host else "LitepodServing"
    elif accelerator.generation in _FAMILIES and accelerator.multi_host:
        kind += "Pod"
    return f"{family}{kind}PerProjectPer{per}ForTPUAPI"


def _kinds_of(record: NodeRecord) -> set[str]:
    """Return the kinds of capacity that a node uses."""
    if record.scheduling == "reserved":
        return {f"{RESERVED}{record.accelerator.name}"}
    return {record.accelerator.name, record.accelerator.generation}


class Capacity:
    """How many chips a zone has for one accelerator type or generation, in use or free.

    Reserved nodes draw on a reservation of their own, the kind `reserved:TYPE`; without one there
    is none.
    """

    def __init__(self, nodes: Nodes, state: StateFile, faults: Faults) -> None:
        self._nodes = nodes
        self._state = state
        self._faults = faults
        self._changed = asyncio.Event()
        self.limits: dict[tuple[str, str], int] = {}
        for name, value, _ in state.load(_CAPACITY):
            zone, kind = name.split("/")
            self.limits[zone, kind] = int(value)
        nodes.listeners.append(lambda _: self._wake())
        faults.listeners.append(self._wake)

    def set(self, zone: str, kind: str, chips: int | None) -> None:
        """Set or lift a limit; `kind` is a type, a generation, or `reserved:` and a type."""
        if chips is None:
            self.limits.pop((zone, kind), None)
            self._state.remove(_CAPACITY, f"{zone}/{kind}")
        else:
            self.limits[zone, kind] = chips
            self._state.put(_CAPACITY, f"{zone}/{kind}", str(chips).encode())
        self._wake()

    def has_room(self, record: NodeRecord) -> bool:
        """Return whether a node fits beside the other live nodes."""
        reserved = record.scheduling == "reserved"
        accelerator = record.accelerator
        if self._faults.is_out_of_stock(record.name.zone, _kinds_of(record)):
            return False
        if reserved:
            kind = f"{RESERVED}{accelerator.name}"
            return self._fits(record, kind, self.limits.get((record.name.zone, kind), 0))
        kinds = (accelerator.name, accelerator.generation)
        limits = {kind: self.limits.get((record.name.zone, kind)) for kind in kinds}
        return all(
            limit is None or self._fits(record, kind, limit) for kind, limit in limits.items()
        )

    def _fits(self, record: NodeRecord, kind: str, limit: int) -> bool:
        used = sum(
            other.accelerator.chips
            for other in self._nodes
            if other is not record
            and other.live
            and other.name.zone == record.name.zone
            and kind in _kinds_of(other)
        )
        return used + record.accelerator.chips <= limit

    async def wait_for_change(self) -> None:
        """Return when a limit or a node has changed."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Quotas:
    """Limits per project, counted in cores or chips as the generation's type names count."""

    def __init__(self, catalogue: Catalogue, nodes: Nodes, state: StateFile) -> None:
        self._catalogue = catalogue
        self._nodes = nodes
        self._state = state
        self.limits: dict[tuple[str, str], int] = {}
        """By (zone or region, limit name)."""

        for name, value, _ in state.load(_QUOTA):
            place, limit_name = name.split("/")
            self.limits[place, limit_name] = int(value)

    def set(self, place: str, limit_name: str, limit: int | None) -> None:
        """Set or lift the limit of a zone or region."""
        if limit is None:
            self.limits.pop((place, limit_name), None)
            self._state.remove(_QUOTA, f"{place}/{limit_name}")
        else:
            self.limits[place, limit_name] = limit
            self._state.put(_QUOTA, f"{place}/{limit_name}", json.dumps(limit).encode())

    def check(self, record: NodeRecord) -> None:
        """Refuse a node beyond a limit.

        Raises:
            ApiError: RESOURCE_EXHAUSTED with a QuotaFailure.
        """
        zone = record.name.zone
        for place, word, per in ((zone, "zone", "Zone"), (region_of(zone), "region", "Region")):
            name = quota_name(record.accelerator, preemptible=record.preemptible, per=per)
            limit = self.limits.get((place, name))
            if limit is None:
                continue
            used = sum(
                self._units(other)
                for other in self._nodes
                if other is not record
                and other.live
                and other.name.project == record.name.project
                and place in {other.name.zone, region_of(other.name.zone)}
                and name == quota_name(other.accelerator, preemptible=other.preemptible, per=per)
            )
            if used + self._units(record) > limit:
                number = project_number(record.name.project)
                raise quota_exceeded(name, limit, f"{word} {place}", number)

    def _units(self, record: NodeRecord) -> int:
        generation = self._catalogue.generations[record.accelerator.generation]
        return record.accelerator.cores if generation.counts_cores else record.accelerator.chips
