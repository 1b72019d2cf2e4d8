"""Live prices of the billing catalogue, laid over the bundled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.store.snapshot import PRICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.cost.prices import PriceBook
    from tpudash.gateways.protocols import Cloud


class PricesSource:
    """Reads the catalogue's TPU prices, which change seldom.

    Args:
        book: The prices to begin with.
        on_prices: Told of the book each time it was read anew.
    """

    name = PRICES

    def __init__(
        self, book: PriceBook, interval_s: float, on_prices: Callable[[PriceBook], None]
    ) -> None:
        self._book = book
        self._interval_s = interval_s
        self._on_prices = on_prices

    async def poll(self, cloud: Cloud) -> None:
        """Read the catalogue once."""
        self._on_prices(self._book.with_catalog(await cloud.billing.list_tpu_prices()))

    def interval_s(self) -> float:
        """Return seconds until the next reading."""
        return self._interval_s
