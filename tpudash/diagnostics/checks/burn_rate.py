"""What everything costs now, and whether all of it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.cost.estimate import project_totals
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import counted, dollars, rate

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "burn-rate",
    "Spending is as wanted",
    Scope.PROJECT,
    why="Nodes cost money for as long as they are READY, and the bill comes a day later.",
    rank=60,
    group=Group.COSTS,
)


def check(evidence: Evidence) -> Finding:
    """Fail above the limit that was set; a part that is not known makes it unknown."""
    totals = project_totals(evidence.snapshot, evidence.prices, evidence.now)
    now = rate(totals.per_hour_usd, at_least=totals.per_hour_is_lower_bound)
    so_far = dollars(totals.accrued_usd, at_least=totals.accrued_is_lower_bound)
    text = f"{now} for {counted(totals.billing_nodes, 'READY node')}; {so_far} so far, estimated"
    if totals.uses_example_prices and totals.billing_nodes:
        text += " by example spot prices"
    limit = evidence.limits.per_hour_usd
    if limit is not None and totals.per_hour_usd is not None and totals.per_hour_usd > limit:
        return ABOUT.failed(
            evidence,
            f"{text}; the limit is {rate(limit)}",
            advice="Delete what is idle, or raise the limit.",
        )
    if totals.per_hour_usd is None or totals.unpriced:
        names = ", ".join(name.rsplit("/", 1)[-1] for name in totals.unpriced)
        unpriced = f"; no price is known for {names}" if names else ""
        return ABOUT.unknown(evidence, text + unpriced)
    return ABOUT.passed(evidence, text)
