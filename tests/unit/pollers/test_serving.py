"""Scraping endpoints: one that fails is asked ever less often and disturbs no other."""

from __future__ import annotations

from random import Random

from tests.unit.pollers.manual_clock import ManualClock
from tpudash.domain.serving import Scrape, ServingEndpoint
from tpudash.errors import UnreachableError
from tpudash.pollers.serving import INTERVAL_S, ServingSource
from tpudash.store.store import Store

GOOD = ServingEndpoint("good", "http://good/metrics")
BAD = ServingEndpoint("bad", "http://bad/metrics")


class Scraper:
    """Counts ten requests a second at one endpoint; the other never answers."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.asked: list[str] = []

    async def scrape(self, endpoint: ServingEndpoint) -> Scrape:
        self.asked.append(endpoint.name)
        if endpoint is BAD:
            raise UnreachableError("nothing answers there")
        count = 10 * self._clock.monotonic()
        return Scrape(self._clock.now(), {0.1: count, float("inf"): count}, requests=count)


async def test_a_dead_endpoint_is_asked_less_often_and_its_neighbour_as_usual() -> None:
    clock, store = ManualClock(), Store()
    scraper = Scraper(clock)
    source = ServingSource((GOOD, BAD), scraper, store, clock, Random(1))
    for _ in range(60):
        await source.poll(None)
        await clock.advance(INTERVAL_S)
    assert scraper.asked.count("good") == 60
    assert 5 <= scraper.asked.count("bad") <= 15
    found = {one.name: one for one in store.serving.latest()}
    assert found["good"].requests_per_second == 10
    assert found["bad"].problem == "nothing answers there"
    assert found["bad"].is_ready is False
