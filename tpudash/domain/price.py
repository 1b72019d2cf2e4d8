"""Prices and estimates. All money is in US dollars and is an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime

    from tpudash.domain.node import Scheduling


@dataclass(frozen=True, slots=True)
class Price:
    """A dated list price of one chip for one hour.

    Attributes:
        per_chip_hour_usd: US dollars for each chip and hour.
        source: Where the price was read.
        as_of: Since which day it holds, by its source; for bundled prices the day it was read.
        is_example: True where the price moves so much that it may be far off (bundled spot prices).
        read: When tpudash read it from the catalogue; None for bundled prices.
        before_usd: What it was at an earlier reading, if it jumped by more than 20 % of late.
        past: What it was before, as (until when, US dollars for each chip and hour), oldest first,
            as far as tpudash read it.
    """

    per_chip_hour_usd: float
    source: str
    as_of: date | None
    region: str
    scheduling: Scheduling
    is_example: bool = False
    read: datetime | None = None
    before_usd: float | None = None
    past: tuple[tuple[datetime, float], ...] = ()

    def chip_usd(self, start: datetime, end: datetime) -> float:
        """Return what a chip cost between two times, each hour at the price that held then."""
        total, begin = 0.0, start
        for until, usd in (*self.past, (max(start, end), self.per_chip_hour_usd)):
            part = min(until, end)
            if part > begin:
                total += usd * (part - begin).total_seconds() / 3600
                begin = part
        return total

    @property
    def change(self) -> float | None:
        """By what share it jumped between two readings, such as 0.5 for half as much again."""
        return self.per_chip_hour_usd / self.before_usd - 1 if self.before_usd else None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What something costs, by chips x dated price x observed time.

    Attributes:
        per_hour_usd: Rate now; 0.0 when nothing is charged now; None when the price is unknown.
        accrued_usd: Total so far; None when unknown.
        is_lower_bound: True when a part is unknown, so that the total is "at least" this much.
        price: The price that was used, if one was found.
    """

    per_hour_usd: float | None
    accrued_usd: float | None
    is_lower_bound: bool = False
    price: Price | None = None
