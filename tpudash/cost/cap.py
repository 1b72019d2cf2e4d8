"""The most that a run may cost: how much of it is used, and for how long the rest lasts.

The agent on the node holds the cap by itself; this is the same rule for everyone who looks from
outside: supervisor, checklist, cost report and clean-up.
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
        per_hour_usd: What it costs an hour now, or will as soon as it has a node; None where that
            is not known.
    """

    cap_usd: float
    spent_usd: float | None
    per_hour_usd: float | None = None

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

    @property
    def lasts(self) -> timedelta | None:
        """For how long the rest lasts at the present rate; None at no or an unknown rate."""
        if self.spent_usd is None or not self.per_hour_usd:
            return None
        return timedelta(hours=max(0.0, self.cap_usd - self.spent_usd) / self.per_hour_usd)

    def is_reached_in(self, seconds: float) -> bool:
        """Whether it will be reached when a node has run for so much longer.

        Where amount or rate is not known, that is no reason to stop.
        """
        lasts = self.lasts
        return self.is_reached or (lasts is not None and lasts.total_seconds() <= seconds)


def cap_of(run: Run, cost: CostEstimate, other_cap_usd: float | None = None) -> CapState | None:
    """Return how a run stands to its cap, or None if it has none.

    Args:
        run: The run, whose spec may have a cap.
        cost: What it costs now and has cost.
        other_cap_usd: Another cap, such as a supervisor's own: the lower one counts.
    """
    caps = (run.spec.max_cost_usd if run.spec else None, other_cap_usd)
    cap = min((one for one in caps if one is not None), default=None)
    if cap is None:
        return None
    return CapState(cap, cost.accrued_usd, cost.per_hour_usd)
