"""`tpudash doctor` on an endpoint that forbids one thing: the row, the role, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.emulator_fixture import Cloud as Emulator


async def test_every_right_has_a_row(emulator: Emulator, tmp_path: Path) -> None:
    await emulator.create("demo-1")
    items = (await CommandLine(tmp_path, emulator.endpoint)("doctor", "--json")).items
    rows = {item["check"]: item for item in items if item["check"].startswith("right-")}
    assert len(rows) == 16
    assert rows["right-tpu.nodes.get"]["verdict"] == "pass"
    assert rows["right-logging.logEntries.list"]["verdict"] == "pass"
    assert rows["right-tpu.nodes.create"]["verdict"] == "n/a"
    assert not [row for row in rows.values() if row["verdict"] in {"fail", "warn"}]


async def test_one_right_that_is_missing(emulator: Emulator, tmp_path: Path) -> None:
    await emulator.control.add_fault("error", method="ListTimeSeries", code="PERMISSION_DENIED")
    items = (await CommandLine(tmp_path, emulator.endpoint)("doctor", "--json")).items
    wrong = [
        item for item in items if item["check"].startswith("right-") and item["verdict"] == "fail"
    ]
    assert [item["check"] for item in wrong] == ["right-monitoring.timeSeries.list"]
    assert "roles/monitoring.viewer" in wrong[0]["advice"]
    assert "roles/monitoring.viewer" in wrong[0]["command"]
