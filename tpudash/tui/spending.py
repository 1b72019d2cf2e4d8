"""What is billed right now, for the status line and for the question before leaving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tpudash.cost.estimate import hourly_rate
from tpudash.wording import format as fmt

if TYPE_CHECKING:
    from tpudash.cost.prices import PriceBook
    from tpudash.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Spending:
    """The present rate in US dollars per hour over all nodes that are billed.

    Attributes:
        per_hour_usd: Sum of the rates that are known.
        billed: How many nodes are billed.
        unpriced: How many of them have no known price, which makes the sum "at least".
    """

    per_hour_usd: float
    billed: int
    unpriced: int

    def text(self, *, plain: bool = False) -> str:
        """Return the rate, such as `$1.35/h` or `≥$4.50/h`."""
        if self.billed and self.unpriced == self.billed:
            return "$?/h"
        mark = fmt.dollars(self.per_hour_usd, at_least=self.unpriced > 0)
        return (mark.replace("≥", ">=") if plain else mark) + "/h"


def spending(snapshot: Snapshot, book: PriceBook) -> Spending:
    """Add up the rates of all nodes that are billed now."""
    billed = [node for node in snapshot.nodes.values() if node.is_billing]
    rates = [
        hourly_rate(node.accelerator_type, node.zone, node.scheduling, book) for node in billed
    ]
    known = [rate for rate in rates if rate is not None]
    return Spending(sum(known), len(billed), len(rates) - len(known))
