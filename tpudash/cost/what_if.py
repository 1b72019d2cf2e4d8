"""What another accelerator type would cost: the types of a zone side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.cost.lives import rate_of
from tpudash.domain.accelerator import load_catalog

if TYPE_CHECKING:
    from collections.abc import Collection

    from tpudash.cost.prices import PriceBook
    from tpudash.domain.node import Scheduling
    from tpudash.domain.price import Price


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One accelerator type in one zone.

    Attributes:
        hbm_gib: Memory of all chips together.
        peak_tflops: Peak TFLOP/s in bfloat16 of all chips, or None where unknown.
        per_hour_usd: US dollars an hour, or None where no price is known.
        per_peak_tflop_usd: US dollars an hour for each peak TFLOP/s.
        price: The price that was used, which says whether it is an example only.
    """

    accelerator_type: str
    chips: int
    hosts: int
    hbm_gib: float
    hbm_gib_per_chip: float
    peak_tflops: float | None
    per_hour_usd: float | None
    per_peak_tflop_usd: float | None
    price: Price | None


def what_if(
    zone: str,
    scheduling: Scheduling,
    book: PriceBook,
    *,
    offered: Collection[str] | None = None,
    most_chips: int | None = None,
) -> tuple[WhatIf, ...]:
    """Return the types of a zone, cheapest first; those without a price come last.

    Args:
        zone: The zone to launch in.
        scheduling: How the capacity is obtained.
        book: The prices to use.
        offered: The types that the API lists there; by default those of the bundled table.
        most_chips: Leaves out what is larger.
    """
    catalog = load_catalog()
    kinds = (
        catalog.in_zone(zone)
        if offered is None
        else tuple(kind for name in offered if (kind := catalog.find(name)) is not None)
    )
    rows = []
    for kind in kinds:
        if most_chips is not None and kind.chips > most_chips:
            continue
        price = book.price_for(kind.name, zone, scheduling)
        rate = rate_of(kind.name, price)
        each = kind.generation.bf16_tflops_per_chip
        peak = each * kind.chips if each else None
        rows.append(
            WhatIf(
                accelerator_type=kind.name,
                chips=kind.chips,
                hosts=kind.hosts,
                hbm_gib=kind.hbm_gib,
                hbm_gib_per_chip=kind.generation.hbm_gib_per_chip,
                peak_tflops=peak,
                per_hour_usd=rate,
                per_peak_tflop_usd=rate / peak if rate is not None and peak else None,
                price=price,
            )
        )
    return tuple(sorted(rows, key=_order))


def _order(row: WhatIf) -> tuple[bool, float, int, str]:
    rate = row.per_hour_usd
    return (rate is None, rate or 0.0, row.chips, row.accelerator_type)
