"""The most that a run may cost: console, supervisor and the agent on the node agree on it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.tui.factories import make_run, make_spec
from tpudash.cost.cap import CapState, cap_of
from tpudash.domain.price import CostEstimate
from trainer.agent.cost_cap import CostCap


def test_the_lower_of_two_caps_counts() -> None:
    run = make_run(spec=make_spec(max_cost_usd=5.0))
    cost = CostEstimate(1.0, 2.0)
    for other, least in ((None, 5.0), (3.0, 3.0), (9.0, 5.0)):
        found = cap_of(run, cost, other)
        assert found is not None
        assert found.cap_usd == least
    assert cap_of(make_run(spec=make_spec(max_cost_usd=None)), cost) is None
    own = cap_of(make_run(spec=make_spec(max_cost_usd=None)), cost, 4.0)
    assert own == CapState(4.0, 2.0, 1.0)


@pytest.mark.parametrize("spent", [None, 0.0, 99.0])
def test_what_is_not_known_is_no_reason_to_stop(spent: float | None) -> None:
    assert not CapState(100.0, spent, None).is_reached_in(1e9)
    assert CapState(100.0, spent, None).lasts is None


def test_an_amount_beyond_the_cap_is_one_whatever_the_rate() -> None:
    assert CapState(10.0, 10.0, None).is_reached_in(0)
    assert CapState(0.0, 0.0, 1.0).is_reached


@pytest.mark.parametrize(
    ("cap", "spent", "rate", "left_h"),
    [(10.0, 0.0, 2.0, 5.0), (10.0, 4.0, 1.5, 4.0), (2.7, 1.35, 1.35, 1.0), (1.0, 3.0, 1.0, 0.0)],
)
def test_the_agent_and_the_outside_stop_at_the_same_moment(
    cap: float, spent: float, rate: float, left_h: float
) -> None:
    """The agent keeps half a minute to save in; the supervisor acts from that moment on."""
    reserve_s = 30.0
    outside = CapState(cap, spent, rate)
    agent = CostCap(cap, rate, spent, reserve_s)
    assert outside.lasts == timedelta(hours=left_h)
    stops_in = agent.left_s(0.0)
    assert max(0.0, stops_in) == pytest.approx(max(0.0, left_h * 3600 - reserve_s))
    then = CapState(cap, spent + rate * max(0.0, stops_in) / 3600, rate)
    assert then.is_reached_in(reserve_s + 0.001)
    if stops_in > 1:
        before = CapState(cap, spent + rate * (stops_in - 1) / 3600, rate)
        assert not before.is_reached_in(reserve_s)
