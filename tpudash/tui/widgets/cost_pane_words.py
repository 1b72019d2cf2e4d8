"""What the cost pane says of one row, in sentences: where its dollars come from and went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.domain.accelerator import load_catalog
from tpudash.wording.format import age, dollars, duration
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tpudash.cost.report import Amount, Comparison, Waste
    from tpudash.cost.run_money import RunMoney
    from tpudash.domain.price import Price
    from tpudash.tui.widgets.cost_pane_ledger import LedgerLine


@dataclass(frozen=True, slots=True)
class MoneyWords:
    """Puts amounts into words, with ASCII only where that is wanted."""

    plain: bool = False

    def dollars(self, usd: float | None, *, at_least: bool = False) -> str:
        """Return an amount such as `$1.35`, `≥$1.35`, or `-` where it is not known."""
        text = dollars(usd, at_least=at_least and usd is not None)
        return text.replace("≥", ">=") if self.plain else text

    def amount(self, amount: Amount) -> str:
        """Return an amount that knows whether it is at least that much."""
        return self.dollars(amount.usd, at_least=amount.is_lower_bound)

    def waste(self, waste: Waste) -> str:
        """Return all that was wasted."""
        return self.dollars(waste.total_usd, at_least=waste.is_lower_bound)

    def waste_parts(self, waste: Waste) -> str:
        """Return what it was wasted on, such as `idle $1.35, steps lost $0.02`; "" for nothing."""
        parts = (
            ("idle", waste.idle_usd),
            ("steps lost", waste.lost_usd),
            ("failed attempts", waste.failed_usd),
        )
        return ", ".join(f"{name} {self.dollars(usd)}" for name, usd in parts if usd != 0)

    def projected(self, money: RunMoney) -> str:
        """Return what a run will have cost at its target, or `-`."""
        known = money.projection
        if known is None:
            return "-"
        return self.dollars(known.total_usd, at_least=known.is_lower_bound)

    def about(self, line: LedgerLine, now: datetime) -> str:
        """Return everything that is to be said of a row."""
        parts = [*self._about_money(line, now), *about_price(line, now)]
        if line.cost.is_lower_bound:
            parts.append("At least this much: a part of its time or price is unknown.")
        if line.cap is not None:
            parts.append(f"Its owner capped it at {dollars(line.cap)}.")
        return " ".join(parts)

    def _about_money(self, line: LedgerLine, now: datetime) -> Iterator[str]:
        today, month = line.today_at(now), line.month_at(now)
        yield f"Today {self.amount(today)}, this month {self.amount(month)}."
        if line.waste is not None and line.waste.total_usd != 0:
            parts = self.waste_parts(line.waste)
            yield f"Wasted {self.waste(line.waste)}: {parts}."
        money = line.money
        if money is None:
            return
        if money.projection is not None and money.projection.remaining_steps:
            left = duration(money.projection.remaining)
            yield f"At this speed {self.projected(money)} at its target, in {left}."
        if money.per_1000_steps is not None and money.per_1000_steps.usd is not None:
            yield f"1,000 steps cost {self.amount(money.per_1000_steps)}."
        if money.comparison is not None:
            yield from self._compared(money.comparison)

    def _compared(self, found: Comparison) -> Iterator[str]:
        if not found.actual_usd:
            return
        taken = f"with {found.preemptions} preemption{'s' * (found.preemptions != 1)}"
        if found.spot_is_lower_bound:
            if found.spot_usd is not None:
                yield f"On spot it would have been {self.dollars(found.spot_usd, at_least=True)}."
        elif found.on_demand_usd is not None:
            paid = self.dollars(found.actual_usd)
            yield f"Spot {paid} {taken}; on demand {self.dollars(found.on_demand_usd)}."


def about_price(line: LedgerLine, now: datetime) -> Iterator[str]:
    """Yield where the price of a row comes from, how old it is, and whether it jumped."""
    price = line.cost.price
    if price is not None:
        yield from _about_known(line, price, now)
    elif line.is_one_life:
        yield "No price is known for this type, place and scheduling."


def _about_known(line: LedgerLine, price: Price, now: datetime) -> Iterator[str]:
    kind = load_catalog().find(line.kind.split(" ")[0])
    chips = f"{kind.chips} chips x " if kind else ""
    as_of = f", of {price.as_of}" if price.as_of else ", of an unknown day"
    yield (
        f"{chips}${price.per_chip_hour_usd:.4f} per chip-hour, {price.scheduling} in "
        f"{safe_text(price.region, 40)}: {safe_text(price.source, 120)}{as_of}."
    )
    if price.is_example:
        yield "~ An example: spot prices change at any time."
    if price.read is not None:
        yield f"Read {age(price.read, now, step=60)} ago."
    if price.change is not None:
        yield f"It jumped by {price.change:+.0%}, from ${price.before_usd:.4g}, of late."
