"""The pollers of a screen, put together; imported only when they begin, after the first frame."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tpudash.pollers.poller_set import PollerSet, Tools
from tpudash.pollers.prices import PricesSource

if TYPE_CHECKING:
    from tpudash.commands.screen import ScreenParts


def make_pollers(parts: ScreenParts) -> PollerSet:
    """Return the pollers of every source."""
    intervals = parts.state.settings.intervals
    random = Random()  # noqa: S311 - spreads questions in time, guards nothing
    tools = Tools(parts.store, parts.link, parts.clock, random)
    more = [PricesSource(parts.prices, intervals.prices, parts.take_prices)]
    return PollerSet(tools, intervals, read_all_runs, more)
