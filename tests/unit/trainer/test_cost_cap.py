"""The most that a run may cost, held by its agent."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.trainer.node import LogServer, fake_trainer, record, spec
from tests.unit.trainer.test_agent import FINISHES, TRAINS_FOREVER
from trainer.agent.cost_cap import CostCap, elapsed_since, parse_time, read_amount, spent_before

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import NodeFactory


def test_cap_lasts_as_long_as_its_money() -> None:
    cap = CostCap(cap_usd=2.0, per_hour_usd=1.0, spent_usd=0.5, reserve_s=30.0)
    assert cap.left_s(0.0) == pytest.approx(1.5 * 3600 - 30)
    assert cap.left_s(5_370.0) == pytest.approx(0.0)
    assert cap.cost_usd(1_800.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("cap", "holds"),
    [
        (CostCap(None, 1.0), False),
        (CostCap(1.0, None), False),
        (CostCap(1.0, 0.0), False),
        (CostCap(1.0, 1.0), True),
    ],
)
def test_without_cap_or_price_there_is_no_end(cap: CostCap, holds: bool) -> None:
    assert cap.holds is holds
    assert (cap.left_s(1e9) == math.inf) is not holds


def test_a_short_cap_keeps_three_quarters_for_training() -> None:
    assert CostCap(0.01, 3.6, reserve_s=30.0).left_s(0.0) == pytest.approx(7.5)


@pytest.mark.parametrize("value", [None, "1", True, -1, math.nan, math.inf, [1]])
def test_what_is_no_amount_is_none(value: Any) -> None:
    assert read_amount({"max_cost_usd": value}, "max_cost_usd") is None


def test_earlier_attempts_count_by_their_records() -> None:
    old = {"started": "2026-12-01T08:00:00Z", "ended": "2026-12-01T09:00:00Z"}
    assert spent_before([{"cost_usd": 0.25}, old, {}], 2.0) == pytest.approx(2.25)
    assert spent_before([old], None) == 0.0


def test_clocks_that_disagree_make_no_negative_time() -> None:
    began = parse_time("2026-12-01T08:00:00.5Z")
    assert began is not None
    assert elapsed_since("2026-12-01T09:00:00Z", began) == 0.0
    assert elapsed_since("never") == 0.0
    assert parse_time("2026-12-01T08:00:00") is None


def test_run_over_its_cap_saves_stops_and_removes_its_node(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    wanted = spec(
        run_folder,
        fake_trainer(run_folder, TRAINS_FOREVER),
        max_cost_usd=0.004,
        cost_per_hour_usd=7.2,
    )
    node = make_node(wanted)
    assert node.start().wait(30) == 65, node.console()
    final = record(run_folder)
    assert (final["state"], final["error"]["class"]) == ("FAILED", "BILLING")
    assert final["checkpoint_step"] == 3
    assert 0.0 < final["cost_usd"] <= 0.004
    assert final["cost_per_hour_usd"] == 7.2
    assert (run_folder / "stopped").read_text().startswith("stop the run has cost")
    assert logs.deleted == ["projects/demo-project/locations/us-central1-b/nodes/demo-1"]


def test_what_earlier_attempts_cost_leaves_nothing_for_this_one(
    make_node: NodeFactory, run_folder: Path
) -> None:
    attempts = run_folder / "attempts"
    attempts.mkdir(parents=True, exist_ok=True)
    (attempts / "1.json").write_text(json.dumps({"schema": 1, "cost_usd": 1.0, "step": 5}))
    wanted = spec(
        run_folder,
        fake_trainer(run_folder, TRAINS_FOREVER),
        attempt=2,
        max_cost_usd=1.0,
        cost_per_hour_usd=7.2,
    )
    assert make_node(wanted).start().wait(30) == 65
    final = record(run_folder, 2)
    assert final["error"]["class"] == "BILLING"
    assert not (run_folder / "lives").exists()


def test_run_within_its_cap_finishes(make_node: NodeFactory, run_folder: Path) -> None:
    wanted = spec(
        run_folder, fake_trainer(run_folder, FINISHES), max_cost_usd=5.0, cost_per_hour_usd=1.0
    )
    assert make_node(wanted).start().wait(30) == 0
    assert record(run_folder)["state"] == "FINISHED"


def test_cap_without_a_price_is_told_and_not_guessed(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    wanted = spec(run_folder, fake_trainer(run_folder, FINISHES), max_cost_usd=0.0)
    assert make_node(wanted).start().wait(30) == 0
    assert any("nobody knew the price" in text for text in logs.texts("agent"))
    assert record(run_folder)["cost_usd"] is None
