"""Figures of served models: out of events that may hold anything, and between two scrapes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.factories import NOW, add_logs, make_entry
from tpudash.domain.serving import Scrape, ServingFigures, ServingKind, figures_between, quantile
from tpudash.store.changes import ServingRead
from tpudash.store.recording_codec import decode, encode
from tpudash.store.serving import MAX_TARGETS, served_in
from tpudash.store.store import Store

EVENT = {
    "event": "serve",
    "ready": True,
    "state": "ready",
    "model": "mnist",
    "version": 60.0,
    "requests_per_second": 120.5,
    "latency_p50_s": 0.002,
    "latency_p99_s": 0.009,
    "errors_per_second": {"429": 1.5, "400": 0},
    "error_fraction": 0.0125,
    "batch_size_mean": 3.5,
    "queue_depth": 2,
}


def test_events_of_a_run_become_its_figures_in_order() -> None:
    store = Store()
    add_logs(store, make_entry(5, "x", payload={**EVENT, "queue_depth": 9}))
    add_logs(
        store, make_entry(0, "x", payload=EVENT), make_entry(6, "y", payload={"event": "step"})
    )
    (figures,) = store.serving.latest()
    assert (figures.kind, figures.name, figures.version) == (ServingKind.RUN, "demo", "60")
    assert (figures.requests_per_second, figures.queue_depth) == (120.5, 9)
    assert figures.errors_per_second == {"429": 1.5}
    assert figures.is_ready
    assert len(store.serving.of(ServingKind.RUN, "demo")) == 1, "what is older comes too late"


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=30,
)


@given(st.dictionaries(st.sampled_from(sorted(EVENT)), _ANYTHING))
def test_an_event_may_hold_anything(payload: dict[str, Any]) -> None:
    entry = make_entry(0, "x", payload={**payload, "event": "serve"})
    (figures,) = served_in([entry])
    numbers = (figures.requests_per_second, figures.latency_p99_s, figures.error_share)
    assert all(value is None or math.isfinite(value) for value in numbers)
    assert len(figures.errors_per_second) <= 10
    assert len(figures.state) <= 60


def test_targets_are_bounded() -> None:
    store = Store()
    for number in range(MAX_TARGETS + 20):
        add_logs(store, make_entry(number, "x", run=f"run-{number}", payload=EVENT))
    assert len(store.serving.latest()) == MAX_TARGETS


def scrape(second: float, fast: float, slow: float, errors: float = 0.0, **more: Any) -> Scrape:
    """Return a scrape with so many fast (up to 10 ms) and slow (up to 1 s) answers."""
    buckets = {0.01: fast, 1.0: fast + slow, math.inf: fast + slow}
    when = NOW + timedelta(seconds=second)
    return Scrape(when, buckets, {"503": errors} if errors else {}, **more)


def test_rates_and_percentiles_are_of_the_time_between_two_scrapes() -> None:
    before = scrape(0, 1_000, 500, errors=90)
    figures = figures_between("api", before, scrape(10, 1_950, 550, errors=100, ready=1.0))
    assert figures.requests_per_second == pytest.approx(101)
    assert figures.error_share == pytest.approx(1 / 101)
    assert figures.errors_per_second == {"503": 1.0}
    assert figures.latency_p50_s == pytest.approx(0.01 * 500 / 950)
    assert figures.latency_p99_s == pytest.approx(0.01 + 0.99 * 40 / 50)
    assert figures.is_ready


def test_a_server_that_was_started_anew_counts_from_nothing() -> None:
    figures = figures_between("api", scrape(0, 1_000, 0, errors=50), scrape(10, 20, 0))
    assert figures.requests_per_second == pytest.approx(2)
    assert figures.error_share == 0
    first = figures_between("api", None, scrape(0, 20, 0))
    assert (first.requests_per_second, first.latency_p99_s, first.is_ready) == (None, None, None)


@given(
    counts=st.dictionaries(st.floats(0, 1e6) | st.just(math.inf), st.floats(0, 1e9), max_size=8),
    share=st.floats(0, 1),
)
def test_a_quantile_of_any_buckets_is_a_finite_time_or_nothing(
    counts: dict[float, float], share: float
) -> None:
    found = quantile(counts, share)
    assert found is None or (math.isfinite(found) and found >= 0)


def test_figures_of_endpoints_can_be_recorded() -> None:
    one = ServingFigures(ServingKind.ENDPOINT, "api", NOW, errors_per_second={"429": 2.0})
    change = ServingRead((one, replace(one, name="b", problem="no answer")))
    assert decode("ServingRead", json.loads(json.dumps(encode(change)))) == change
