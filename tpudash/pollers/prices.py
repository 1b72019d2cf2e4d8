"""Live prices of the billing catalogue, laid over the bundled ones and kept for the next time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tpudash.store.snapshot import PRICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.clock import Clock
    from tpudash.cost.price_cache import PriceCache
    from tpudash.cost.prices import PriceBook
    from tpudash.gateways.protocols import Cloud


class PricesSource:
    """Reads the catalogue's TPU prices, which change seldom.

    Args:
        book: The prices to begin with.
        on_prices: Told of the book each time it was read anew.
        cache: Keeps what was read; None keeps nothing.
    """

    name = PRICES

    def __init__(
        self,
        book: PriceBook,
        interval_s: float,
        on_prices: Callable[[PriceBook], None],
        cache: PriceCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._book = book
        self._interval_s = interval_s
        self._on_prices = on_prices
        self._cache = cache
        self._clock = clock

    async def poll(self, cloud: Cloud) -> None:
        """Read the catalogue once."""
        prices = await cloud.billing.list_tpu_prices()
        if self._cache is not None and self._clock is not None:
            prices = await asyncio.to_thread(self._cache.take, prices, self._clock.now())
        self._on_prices(self._book.with_catalog(prices))

    def interval_s(self) -> float:
        """Return seconds until the next reading."""
        return self._interval_s
