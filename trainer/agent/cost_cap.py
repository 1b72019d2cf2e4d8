"""The most that a run may cost, held on the node itself: it holds with no console open.

The amount is an estimate: the rate that the spec carries times the time since this attempt began,
and what the attempts before it cost by their records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOUR_S = 3600.0


@dataclass(frozen=True)
class CostCap:
    """How much a run may cost, and what it costs.

    Attributes:
        cap_usd: the most that it may cost, or None for no cap.
        per_hour_usd: what the node costs an hour, or None where nobody knew.
        spent_usd: what earlier attempts cost.
        reserve_s: time to keep for saving and for removing the node.
    """

    cap_usd: float | None = None
    per_hour_usd: float | None = None
    spent_usd: float = 0.0
    reserve_s: float = 30.0

    @property
    def holds(self) -> bool:
        """Whether there is a cap that can be reckoned with."""
        return self.cap_usd is not None and self.per_hour_usd is not None and self.per_hour_usd > 0

    def cost_usd(self, elapsed_s: float) -> float | None:
        """Return what this attempt has cost after that many seconds, or None if not known."""
        if self.per_hour_usd is None:
            return None
        return self.per_hour_usd * max(0.0, elapsed_s) / _HOUR_S

    def error(self, step: int | None, saved: int | None) -> dict[str, str]:
        """Return the error of an attempt that ended since the run may cost no more."""
        return {
            "class": "BILLING",
            "detail": f"the run has cost what it may, ${self.cap_usd or 0.0:.2f} (an estimate); it "
            f"stopped at step {step}, saved at step {saved}",
            "hint": "checkpoints are kept; resume it with a higher cap to go on",
        }

    def left_s(self, elapsed_s: float) -> float:
        """Return for how many seconds the trainer may go on; infinite without a cap."""
        if self.cap_usd is None or not self.per_hour_usd:
            return math.inf
        lasts_s = (self.cap_usd - self.spent_usd) / self.per_hour_usd * _HOUR_S
        # Of a cap that lasts for a moment only, the reserve must not be all.
        return lasts_s - elapsed_s - min(self.reserve_s, max(0.0, lasts_s) / 4)


def read_amount(raw: dict[str, Any], key: str) -> float | None:
    """Return an amount of a spec or record: a finite number that is not negative, else None."""
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def spent_before(records: Iterable[dict[str, Any]], per_hour_usd: float | None) -> float:
    """Return what earlier attempts cost, by what their agents wrote.

    A record of an older agent has no amount; then its time counts at this attempt's rate.
    """
    return sum(_spent(record, per_hour_usd) for record in records)


def _spent(record: dict[str, Any], per_hour_usd: float | None) -> float:
    amount = read_amount(record, "cost_usd")
    if amount is not None:
        return amount
    began = parse_time(record.get("started"))
    ended = parse_time(record.get("ended") or record.get("updated"))
    if began is None or ended is None or per_hour_usd is None:
        return 0.0
    return per_hour_usd * max(0.0, (ended - began).total_seconds()) / _HOUR_S


def elapsed_since(started: str, now: datetime | None = None) -> float:
    """Return seconds since an attempt's `started`; 0 where that can't be read or lies ahead."""
    began = parse_time(started)
    if began is None:
        return 0.0
    moment = now or datetime.now(timezone.utc)
    return max(0.0, (moment - began).total_seconds())


def parse_time(text: object) -> datetime | None:
    """Return a time of a record, or None where it is no time or has no zone."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
