"""What a run will cost by its target step, and what steps cost that are done again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.tui.factories import NOW, make_attempt, make_run, make_spec
from tpudash.cost.prices import PriceBook
from tpudash.cost.projection import cost_of_steps, observed_speed, projected_total
from tpudash.domain.price import CostEstimate

BOOK = PriceBook.bundled()
RATE = 1.35
COST = CostEstimate(RATE, 0.50)


def attempt(steps: int, seconds: float, number: int = 1, **more: Any) -> Any:
    return make_attempt(
        number,
        step=steps,
        started=NOW - timedelta(seconds=seconds),
        updated=NOW,
        **more,
    )


def test_speed_is_that_of_the_newest_attempt_with_progress() -> None:
    old = attempt(100, 100)
    new = attempt(450, 125, 2, restored_step=200)
    assert observed_speed(make_run(attempts=(old, new))) == pytest.approx(2.0)
    just_begun = attempt(200, 5, 3, restored_step=200)
    assert observed_speed(make_run(attempts=(old, new, just_begun))) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "record",
    [attempt(0, 10), attempt(100, 0), replace(attempt(100, 10), restored_step=None)],
)
def test_without_progress_there_is_no_speed(record: Any) -> None:
    assert observed_speed(make_run(attempts=(record,))) is None


def test_projection_adds_the_rest_at_the_present_speed() -> None:
    run = make_run(step=450, target_step=600, attempts=(attempt(450, 900),))
    projection = projected_total(run, COST, BOOK)
    assert projection is not None
    assert projection.remaining_steps == 150
    assert projection.remaining == timedelta(seconds=300)
    assert projection.remaining_usd == pytest.approx(RATE / 12)
    assert projection.total_usd == pytest.approx(0.50 + RATE / 12)
    faster = projected_total(run, COST, BOOK, steps_per_second=5.0)
    assert faster is not None
    assert faster.remaining == timedelta(seconds=30)


def test_projection_beyond_the_target_adds_nothing() -> None:
    run = make_run(step=700, target_step=600, attempts=(attempt(700, 900),))
    projection = projected_total(run, COST, BOOK)
    assert projection is not None
    assert projection.total_usd == pytest.approx(0.50)


def test_projection_of_an_unknown_past_is_unknown_in_total() -> None:
    run = make_run(step=450, attempts=(attempt(450, 900),))
    projection = projected_total(run, CostEstimate(RATE, None, is_lower_bound=True), BOOK)
    assert projection is not None
    assert projection.total_usd is None
    assert projection.is_lower_bound


@pytest.mark.parametrize(
    "more",
    [
        {"step": None},
        {"target_step": None, "spec": make_spec(target_step=None)},
        {"attempts": ()},
        {"spec": None},
        {"spec": make_spec(accelerator_type="v9-8")},
    ],
)
def test_projection_needs_target_step_speed_and_price(more: dict[str, Any]) -> None:
    run = make_run(**{"attempts": (attempt(450, 900),), **more})
    assert projected_total(run, COST, BOOK) is None


def test_lost_steps_cost_the_time_to_do_them_again() -> None:
    run = make_run(attempts=(attempt(450, 900),))
    assert cost_of_steps(run, 100, BOOK) == pytest.approx(RATE * 200 / 3600)
    assert cost_of_steps(run, 100, BOOK, steps_per_second=1) == pytest.approx(RATE * 100 / 3600)
    assert cost_of_steps(run, 0, BOOK) == 0.0
    assert cost_of_steps(run, None, BOOK) is None
    assert cost_of_steps(make_run(spec=None), 100, BOOK) is None
