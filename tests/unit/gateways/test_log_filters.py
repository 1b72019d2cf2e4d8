"""Filters of the Logging query language: whatever is put into one stays a value."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.gateways.log_filters import (
    all_of,
    node_filter,
    quoted,
    run_filter,
    since_filter,
)

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@given(st.text())
def test_a_quoted_text_is_one_string_on_one_line(text: str) -> None:
    found = quoted(text)
    assert STRING.fullmatch(found)
    assert all(character.isprintable() for character in found)


@given(st.text(), st.text())
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (quoted(one) == quoted(other)) is (one == other)


def test_a_nodes_workers() -> None:
    assert node_filter("demo-1", zone="us-central1-b", worker="0") == (
        'resource.type="tpu_worker" AND resource.labels.node_id="demo-1"'
        ' AND resource.labels.zone="us-central1-b" AND resource.labels.worker_id="0"'
    )


def test_a_runs_attempt() -> None:
    assert run_filter("demo") == 'labels."tpudash-run"="demo"'
    assert run_filter("demo", attempt=2) == (
        'labels."tpudash-run"="demo" AND labels."tpudash-attempt"="2"'
    )


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=2)), timezone(-timedelta(hours=11))]
)
def test_times_are_given_in_utc(zone: timezone) -> None:
    time = datetime(2026, 12, 1, 10, 0, 0, 123456, UTC).astimezone(zone)
    assert since_filter(time) == 'timestamp>="2026-12-01T10:00:00.123456Z"'


def test_alternatives_keep_together_when_more_is_asked_for() -> None:
    assert all_of("a=1 OR b=2", "", "c=3") == "(a=1 OR b=2) AND c=3"
    assert all_of("a=1 OR b=2") == "a=1 OR b=2"
    assert all_of("", " ") == ""
