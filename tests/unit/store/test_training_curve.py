"""Training curves out of log entries."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.tui.factories import NOW, make_entry
from tpudash.store.training_curve import number_in, training_curve

if TYPE_CHECKING:
    from tpudash.domain.log import LogEntry


def step(second: float, number: float, attempt: int = 1, **figures: Any) -> LogEntry:
    payload = {"event": "step", "step": number, **figures}
    return make_entry(second, "", stream="event", attempt=attempt, payload=payload)


def test_points_are_in_order_and_each_there_once() -> None:
    entries = [step(4, 20, loss=0.4), step(2, 10.0, loss=0.5), step(4, 20, loss=0.4)]
    curve = training_curve(entries, "demo")
    assert [(point.step, point.values["loss"]) for point in curve.points] == [(10, 0.5), (20, 0.4)]
    assert curve.last is not None
    assert curve.last.time == NOW + timedelta(seconds=4)


def test_other_runs_and_other_events_are_left_out() -> None:
    other = make_entry(1, "", run="other", payload={"event": "step", "step": 5, "loss": 1.0})
    saved = make_entry(1, "", payload={"event": "checkpoint", "step": 5})
    plain = make_entry(1, "step 5 loss 0.1")
    assert training_curve([other, saved, plain], "demo").points == ()


@pytest.mark.parametrize("value", [None, "0.5", True, float("nan"), float("inf"), [1]])
def test_what_is_no_finite_number_is_no_point(value: object) -> None:
    curve = training_curve([step(1, 10, loss=value, step_time_s=0.1)], "demo")
    assert curve.history("loss") == ()
    assert [point.value for point in curve.history("step_time_s")] == [0.1]
    assert number_in({"loss": value}, "loss") is None


def test_a_step_without_a_number_is_no_point() -> None:
    entry = make_entry(1, "", payload={"event": "step", "loss": 0.3})
    assert training_curve([entry], "demo").points == ()


def test_speed_is_that_of_the_newest_attempt_within_the_window() -> None:
    first = [step(second, second * 5, 1) for second in range(0, 100, 10)]
    second = [step(200 + second, 300 + second * 2, 2) for second in range(0, 300, 10)]
    curve = training_curve([*second, *first], "demo")
    assert curve.steps_per_second() == pytest.approx(2.0)
    assert training_curve(first[:1], "demo").steps_per_second() is None
    assert training_curve([], "demo").steps_per_second() is None


def test_mean_is_over_the_newest_events_of_the_newest_attempt() -> None:
    old = [step(second, second, 1, input_wait_fraction=0.9) for second in range(5)]
    new = [step(10 + at, at, 2, input_wait_fraction=at / 10) for at in range(4)]
    curve = training_curve([*old, *new], "demo")
    assert curve.mean("input_wait_fraction") == pytest.approx(0.15)
    assert curve.mean("input_wait_fraction", last=1) == pytest.approx(0.3)
    assert curve.mean("loss") is None
