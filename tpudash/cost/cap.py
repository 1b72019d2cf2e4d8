"""The most that a run may cost: how much of it is used, and for how long the rest lasts.

The agent on the node holds the cap by itself; this is the same rule for who looks from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tpudash.domain.price import CostEstimate
    from tpudash.domain.run import Run

NEARLY: Final = 0.8
"""From this share on a cap is worth a warning."""


@dataclass(frozen=True, slots=True)
class CapState:
    """How a run stands to its cap.

    Attributes:
        spent_usd: What it has cost so far, or None where that is not known.
        lasts: For how long the rest lasts at the present rate; None at no or an unknown rate.
    """

    cap_usd: float
    spent_usd: float | None
    lasts: timedelta | None

    @property
    def share(self) -> float | None:
        """Which share of the cap is used, or None."""
        if self.spent_usd is None:
            return None
        return self.spent_usd / self.cap_usd if self.cap_usd > 0 else 1.0

    @property
    def is_reached(self) -> bool:
        """Whether the run may cost no more; an unknown amount is no reason to stop it."""
        return self.share is not None and self.share >= 1

    @property
    def is_near(self) -> bool:
        """Whether most of it is used."""
        return self.share is not None and self.share >= NEARLY


def cap_of(run: Run, cost: CostEstimate) -> CapState | None:
    """Return how a run stands to its cap, or None if it has none."""
    cap = run.spec.max_cost_usd if run.spec else None
    if cap is None:
        return None
    left = None
    if cost.accrued_usd is not None and cost.per_hour_usd:
        left = timedelta(hours=max(0.0, cap - cost.accrued_usd) / cost.per_hour_usd)
    return CapState(cap, cost.accrued_usd, left)
