"""What is to be different when a run goes on: its zones, its cap, the queue; and whether it can."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tpudash.domain.accelerator import load_catalog
from tpudash.domain.node import Scheduling
from tpudash.errors import UsageError
from tpudash.operations.desk import nearest

if TYPE_CHECKING:
    from tpudash.domain.operation import ResumeChanges
    from tpudash.domain.run import RunSpec
    from tpudash.gateways.protocols import Cloud
    from tpudash.operations.desk import Desk


async def changed_spec(
    desk: Desk, cloud: Cloud, spec: RunSpec, changes: ResumeChanges
) -> tuple[RunSpec, tuple[str, ...]]:
    """Return the spec with its changes, and what the user should know of them.

    Raises:
        UsageError: The type is offered in none of the zones, or the queue can't serve it.
    """
    notes: tuple[str, ...] = ()
    if changes.zones:
        zones, notes = await offering(cloud, spec.accelerator_type, changes.zones)
        spec = replace(spec, zone=zones[0], candidate_zones=zones)
    placement = spec.placement
    if changes.queued is not None:
        placement = replace(placement, queued=changes.queued)
    if changes.valid_until_s is not None:
        placement = replace(placement, valid_until_s=changes.valid_until_s)
    if placement.queued and spec.scheduling is Scheduling.PREEMPTIBLE:
        raise UsageError(
            "a queued resource can't be preemptible",
            hint="leave --queued out, or launch with --spot",
        )
    if changes.max_cost_usd is not None:
        spec = replace(spec, max_cost_usd=changes.max_cost_usd)
    spec = replace(spec, placement=placement)
    return replace(spec, cost_per_hour_usd=desk.highest_rate(spec)), notes


async def offering(
    cloud: Cloud, accelerator_type: str, zones: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those zones that offer a type, in their order, and a note about the others.

    Raises:
        UsageError: None of them does, or the project sees no such zone.
    """
    visible = await cloud.tpu.list_zones()
    for zone in zones:
        if zone not in visible:
            raise UsageError(
                f"the project {cloud.project} sees no zone {zone!r}",
                hint=nearest(zone, visible) or f"it sees {', '.join(sorted(visible)[:5])}",
            )
    offered = await asyncio.gather(*map(cloud.tpu.list_accelerator_types, zones))
    having = [zone for zone, types in zip(zones, offered, strict=True) if accelerator_type in types]
    dropped = [zone for zone in zones if zone not in having]
    if not having:
        kind = load_catalog().find(accelerator_type)
        elsewhere = [zone for zone in kind.zones if zone in visible] if kind else []
        raise UsageError(
            f"{accelerator_type} is not offered in {', '.join(zones)}",
            detail=f"{zones[0]} has {', '.join(sorted(offered[0])[:8])}",
            hint=f"zones that have it: {', '.join(elsewhere[:5])}" if elsewhere else "",
        )
    note = (f"{accelerator_type} is not offered in {', '.join(dropped)}",) if dropped else ()
    return tuple(dict.fromkeys(having)), note
