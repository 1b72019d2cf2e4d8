"""Which quota limits bear on a run, and what holds them.

Names of limits say generation, scheduling, form and place:
`TPUV6EPreemptiblePerProjectPerZoneForTPUAPI`. Source: https://cloud.google.com/tpu/docs/quota
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.domain.request import FINISHED_REQUEST_STATES
from tpudash.domain.resource_name import region_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tpudash.domain.accelerator import AcceleratorType
    from tpudash.domain.probe import QuotaLimit
    from tpudash.domain.run import RunSpec
    from tpudash.store.snapshot import Snapshot

_NAME: Final = re.compile(
    r"TPU(?P<family>V\d+[A-Z]?)s?(?P<preemptible>Preemptible)?(?P<form>Litepod(?:Serving)?|Pod)?"
    r"PerProjectPer(?P<per>Zone|Region)"
)
_FAMILIES: Final = {"V2": "v2", "V3": "v3", "V4": "v4", "V5": "v5e", "V5P": "v5p", "V6E": "v6e"}
COUNTS_CHIPS: Final = frozenset({"v5e", "v6e"})


def units_of(kind: AcceleratorType) -> int:
    """Return in what a type counts against its quota: chips or cores, as its name does."""
    return kind.chips if kind.generation.name in COUNTS_CHIPS else kind.cores


def limits_for(spec: RunSpec, limits: Iterable[QuotaLimit]) -> list[QuotaLimit]:
    """Return the limits that a node of a run would count against, its zone's and its region's."""
    return [limit for limit in limits if _bears_on(limit, spec)]


def _bears_on(limit: QuotaLimit, spec: RunSpec) -> bool:
    kind = load_catalog().find(spec.accelerator_type)
    name = _NAME.search(limit.quota_id)
    if kind is None or name is None or spec.scheduling is Scheduling.RESERVED:
        return False
    if _FAMILIES.get(name["family"]) != kind.generation.name:
        return False
    if bool(name["preemptible"]) != spec.scheduling.may_be_preempted:
        return False
    form = (name["form"] or "").lower()
    is_pod_limit = form in {"pod", "litepod"}
    if kind.generation.name in {"v2", "v3", "v4", "v5e"} and is_pod_limit != kind.is_slice:
        return False
    place = region_of(spec.zone) if name["per"].lower() == "region" else spec.zone
    return limit.place in {"", place}


def used_by(limit: QuotaLimit, spec: RunSpec, snapshot: Snapshot) -> int:
    """Return how much of a limit is in use by what is listed, dead nodes and requests included."""
    is_regional = "perregion" in limit.quota_id.lower()
    return sum(
        units
        for zone, units in _held(spec, snapshot)
        if (region_of(zone) == region_of(spec.zone) if is_regional else zone == spec.zone)
    )


def _held(spec: RunSpec, snapshot: Snapshot) -> list[tuple[str, int]]:
    kind = load_catalog().find(spec.accelerator_type)
    held = []
    for node in snapshot.nodes.values():
        other = load_catalog().find(node.accelerator_type)
        is_alike = node.scheduling.may_be_preempted == spec.scheduling.may_be_preempted
        if kind and other and other.generation == kind.generation and is_alike:
            held.append((node.zone, units_of(other)))
    return held


def holders_in(spec: RunSpec, snapshot: Snapshot) -> list[tuple[str, int, str]]:
    """Return (name, chips, state) of all that holds chips of a run's kind in its region.

    What is dead comes first: it holds them for nothing.
    """
    kind = load_catalog().find(spec.accelerator_type)
    region, found = region_of(spec.zone), []
    for node in snapshot.nodes.values():
        other = load_catalog().find(node.accelerator_type)
        if kind and other and other.generation == kind.generation and node.region == region:
            found.append((not node.is_dead, node.node_id, other.chips, node.state))
    listed = set(snapshot.nodes)
    for request in snapshot.requests.values():
        other = load_catalog().find(request.accelerator_type)
        is_idle = request.state in FINISHED_REQUEST_STATES and listed.isdisjoint(request.node_names)
        is_alike = bool(kind and other and other.generation == kind.generation)
        if other and is_alike and is_idle and region_of(request.zone) == region:
            found.append((False, request.request_id, other.chips, request.state))
    return [(name, chips, state) for _, name, chips, state in sorted(found)]
