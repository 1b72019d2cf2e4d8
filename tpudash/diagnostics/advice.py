"""What to do about each class of failure, and where else the same type could be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tpudash.cost.estimate import hourly_rate
from tpudash.diagnostics.classifier_advice import advice_for
from tpudash.diagnostics.words import rate
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.failure import ErrorClass, Scope
from tpudash.domain.node import Scheduling
from tpudash.domain.resource_name import region_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.run import RunSpec

ELSEWHERE_HELPS: Final = frozenset(
    {ErrorClass.STOCKOUT, ErrorClass.QUOTA, ErrorClass.LOCATION, ErrorClass.RESERVATION}
)
"""Classes for which another zone or scheduling is an answer."""
MOST_ZONES: Final = 4
MOST_TYPES: Final = 3


def advice_on_class(kind: ErrorClass, scope: Scope | None = None) -> str:
    """Return what helps against a class of failure, with the names of the scope in it."""
    return advice_for(kind, None, scope or Scope(), {})


def parse_class(name: object) -> ErrorClass:
    """Return the class of that name, or UNCLASSIFIED."""
    try:
        return ErrorClass(str(name))
    except ValueError:
        return ErrorClass.UNCLASSIFIED


def describe_error(error: Mapping[str, Any]) -> tuple[ErrorClass, str, str]:
    """Return class, detail and hint of an error as a record holds it.

    Args:
        error: `{"class", "detail", "hint"}` as the trainer writes it, or with the names of a
            `Failure`: `error_class`, `evidence` and `advice`.
    """
    kind = parse_class(error.get("class") or error.get("error_class"))
    detail = str(error.get("detail") or error.get("evidence") or "")
    hint = str(error.get("hint") or error.get("advice") or "")
    return kind, detail, hint


def other_zones(
    accelerator_type: str, zone: str, scheduling: Scheduling, prices: PriceBook
) -> list[str]:
    """Return the other zones that offer a type.

    Zones of the same region come first, then the cheapest; an unknown price comes last.
    """
    kind = load_catalog().find(accelerator_type)

    def order(other: str) -> tuple[bool, float, str]:
        price = hourly_rate(accelerator_type, other, scheduling, prices)
        is_far = region_of(other) != region_of(zone)
        return (is_far, float("inf") if price is None else price, other)

    return sorted((other for other in kind.zones if other != zone) if kind else (), key=order)


def elsewhere(accelerator_type: str, zone: str, scheduling: Scheduling, prices: PriceBook) -> str:
    """Say in which other zones a type is offered, and for how much; "" if in none."""
    zones = other_zones(accelerator_type, zone, scheduling, prices)
    if not zones:
        return ""
    named = [
        f"{other} ({rate(hourly_rate(accelerator_type, other, scheduling, prices))})"
        for other in zones[:MOST_ZONES]
    ]
    more = f" and {len(zones) - MOST_ZONES} more" if len(zones) > MOST_ZONES else ""
    return f"{accelerator_type} {scheduling} is also offered in {', '.join(named)}{more}."


def launch_command(spec: RunSpec, zone: str | None = None) -> str:
    """Return the command that launches a run like this, in another zone if one is given."""
    steps = "" if spec.target_step is None else f" --steps {spec.target_step}"
    return (
        f"tpudash launch {spec.run} --accelerator {spec.accelerator_type} "
        f"--zone {zone or spec.zone} --{spec.scheduling} --bucket {spec.bucket}{steps}"
    )


def other_scheduling(
    accelerator_type: str, zone: str, scheduling: Scheduling, prices: PriceBook
) -> str:
    """Say what the type costs in the same zone on the other scheduling; "" if not known."""
    other = Scheduling.ON_DEMAND if scheduling.may_be_preempted else Scheduling.SPOT
    price = hourly_rate(accelerator_type, zone, other, prices)
    return "" if price is None else f"{other} in {zone} costs {rate(price)}."


def more_memory(accelerator_type: str, zone: str, scheduling: Scheduling, prices: PriceBook) -> str:
    """Say which types of about the same number of chips have more memory each; "" if none."""
    catalog = load_catalog()
    kind = catalog.find(accelerator_type)
    if kind is None:
        return ""
    larger = [
        other
        for other in catalog.in_zone(zone)
        if other.generation.hbm_gib_per_chip > kind.generation.hbm_gib_per_chip
        and kind.chips <= other.chips < 2 * kind.chips
    ]
    named = [
        f"{other.name} ({other.generation.hbm_gib_per_chip:.0f} GiB per chip, "
        f"{rate(hourly_rate(other.name, zone, scheduling, prices))})"
        for other in larger[:MOST_TYPES]
    ]
    return f"With more memory per chip in {zone}: {', '.join(named)}." if named else ""
