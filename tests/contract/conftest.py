"""The emulator that contract tests speak to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.emulator_fixture import Cloud, fast_settings, running_cloud
from tpudash.clock import SystemClock
from tpudash.gateways import connection
from tpudash.gateways.pace import Paces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait because another one has used up the calls of a minute."""
    monkeypatch.setattr(connection, "SHARED", Paces(SystemClock()))


@pytest.fixture
async def emulator(tmp_path: Path) -> AsyncIterator[Cloud]:
    """An emulator with an empty world and fast operations, in this test's event loop."""
    async with running_cloud(fast_settings(tmp_path / "emulator")) as cloud:
        yield cloud
