"""Whatever the weather: one live node, no live one deleted, the cap kept, the run finished."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.unit.operations.conftest import wish
from tests.unit.operations.fake_cloud import OTHER_ZONE, ZONE
from tests.unit.operations.storm import RATE_USD, Storm, Weather, worst
from tpudash.domain.operation import OperationState, ResumeChanges, SupervisionWish

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.domain.operation import OperationProgress

DAY_S = 86_400.0
SEEDS = range(12)


async def weathered(storm: Storm, max_attempts: int = 400) -> OperationProgress:
    """Launch in calm weather, then supervise through the storm."""
    zones = (ZONE, OTHER_ZONE)
    supervision = SupervisionWish(
        max_attempts=max_attempts, max_cost_usd=storm.cap_usd, changes=ResumeChanges(zones=zones)
    )

    async def story() -> OperationProgress:
        operations = storm.session()
        begun = operations.start(await operations.plan_launch(wish(zones=zones)))
        await operations._tasks[begun.operation_id]
        storm.is_calm = False
        return await storm.supervised(supervision)

    return await storm.clock.run(story(), within_s=DAY_S / 2)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_run_comes_through_any_storm(tmp_path: Path, seed: int) -> None:
    storm = Storm(tmp_path, worst(seed), Random(seed))
    progress = await weathered(storm)
    assert not storm.wrongs
    assert storm.world.most_live == 1
    if progress.state is not OperationState.DONE:
        assert progress.failure is not None, progress
        assert "in a row" in progress.message or "tries" in progress.message
    else:
        assert "is finished at step" in progress.message


@pytest.mark.parametrize("seed", SEEDS[:6])
async def test_the_cap_is_kept_in_any_storm(tmp_path: Path, seed: int) -> None:
    storm = Storm(tmp_path, worst(seed), Random(seed), cap_usd=0.4)
    progress = await weathered(storm)
    assert not storm.wrongs
    assert storm.world.most_live == 1
    assert storm.cost_usd <= 0.4 + RATE_USD * 60 / 3600
    assert progress.state is OperationState.FAILED
    if "cost what it may" in progress.message:
        assert not storm.world.live("demo")


async def test_tries_are_counted_over_restarts(tmp_path: Path) -> None:
    weather = Weather(crash=0.03, life_s=30.0)
    storm = Storm(tmp_path, weather, Random(3))
    progress = await weathered(storm, max_attempts=6)
    assert storm.restarts > 2
    assert progress.state is OperationState.FAILED
    assert "6 tries are used up" in progress.message
    assert storm.world.counted("create_node") <= 1 + 6
