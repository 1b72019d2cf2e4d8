"""Whether a price that is being paid has jumped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.store.snapshot import PRICES

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "price-jump",
    "Prices are as they were",
    Scope.PROJECT,
    why="Spot prices change at any time; a jump may also be a defect in the catalogue.",
    rank=63,
    source=PRICES,
    group=Group.COSTS,
)


def check(evidence: Evidence) -> Finding:
    """Warn of prices in use that changed by more than a fifth between two readings."""
    used = {
        (life.accelerator_type, life.price)
        for life in evidence.lives
        if life.is_listed and life.price is not None
    }
    if not used:
        return ABOUT.not_applicable(evidence, "no price is in use")
    jumped = sorted(
        f"{kind} {price.scheduling} in {price.region}: ${price.before_usd:.4g} to "
        f"${price.per_chip_hour_usd:.4g} per chip-hour ({price.change:+.0%})"
        for kind, price in used
        if price.change is not None
    )
    if jumped:
        return ABOUT.warned(
            evidence,
            "; ".join(jumped[:3]),
            advice="Compare with other types and zones.",
            command="tpudash cost --what-if ZONE",
        )
    live = [price for _, price in used if price.read is not None]
    if not live:
        return ABOUT.unknown(evidence, "the catalogue was not read; bundled prices do not change")
    return ABOUT.passed(evidence, f"{len(live)} prices in use, none jumped")
