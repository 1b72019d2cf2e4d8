"""`tpudash doctor` and the Prometheus endpoints of the settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.contract.test_gateway_prometheus import answering, exposition, http
from tests.unit.pollers.manual_clock import ManualClock
from tpudash.commands import doctor
from tpudash.config.settings import Serving, Settings
from tpudash.domain.serving import ServingEndpoint, ServingLimits
from tpudash.store.snapshot import ENDPOINTS, SourceState
from tpudash.store.store import Store


class SteppingClock(ManualClock):
    """Sleeps by moving the time itself."""

    async def sleep(self, seconds: float) -> None:
        await self.advance(seconds)


async def look(*endpoints: ServingEndpoint) -> Store:
    serving = Serving(endpoints=endpoints, p99_limit_s=0.3)
    session: Any = SimpleNamespace(settings=Settings(serving=serving), clock=SteppingClock())
    store = Store()
    await doctor._read_endpoints(cast("Any", session), store)
    return store


async def test_endpoints_are_scraped_twice_for_a_rate_and_a_dead_one_is_told() -> None:
    async with answering(http(exposition())) as endpoint:
        store = await look(endpoint, ServingEndpoint("gone", "http://127.0.0.1:1/metrics"))
    found = {one.name: one for one in store.serving.latest()}
    assert (found["api"].is_ready, found["api"].requests_per_second) == (True, 0)
    assert found["gone"].problem == "nothing answers there"
    assert store.serving.limits == ServingLimits(0.3, 0.01)
    assert store.snapshot.sources[ENDPOINTS].state is SourceState.OK


async def test_without_endpoints_nobody_is_asked() -> None:
    store = await look()
    assert store.serving.latest() == ()
    assert ENDPOINTS not in store.snapshot.sources
