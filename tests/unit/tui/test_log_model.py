"""A log view mirrors the ring, and while it stands still its lines stay where they are."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tpudash.domain.log import LogEntry, Severity
from tpudash.store.log_ring import LogRing
from tpudash.tui.widgets.log_view_filter import parse_filter
from tpudash.tui.widgets.log_view_model import HELD_FACTOR, SLICE, LogLines

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def make_entry(second: float, text: str) -> LogEntry:
    return LogEntry(NOW + timedelta(seconds=second), Severity.INFO, text, insert_id=text)


def texts(lines: LogLines) -> list[str]:
    return [row.entry.text for row in lines.shown]


BATCHES = st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=12)


@given(BATCHES, st.sampled_from(["", "a", "!a"]))
def test_a_following_view_shows_what_the_ring_holds(batches: list[list[int]], typed: str) -> None:
    ring = LogRing(max_entries=12)
    lines = LogLines(ring)
    lines.set_filter(parse_filter(typed))
    count = 0
    for seconds in batches:
        entries = []
        for second in seconds:
            count += 1
            entries.append(make_entry(second, f"{'ab'[count % 2]} {count}"))
        ring.add(entries)
        lines.sync(standing=False)
        wanted = [
            entry.text
            for entry in ring
            if parse_filter(typed).terms == () or (("a" in entry.text) == (typed == "a"))
        ]
        assert texts(lines) == wanted
        assert lines.total == len(ring)


@given(BATCHES, st.integers(0, 11), st.sampled_from(["", "a"]))
@settings(max_examples=200)
def test_a_standing_view_keeps_its_page(batches: list[list[int]], top: int, typed: str) -> None:
    ring = LogRing(max_entries=12)
    ring.add(make_entry(10 + at, f"a {at}") for at in range(12))
    lines = LogLines(ring)
    lines.set_filter(parse_filter(typed))
    lines.sync(standing=False)
    lines.top = top
    page = lines.shown[top]
    count = 100
    for seconds in batches:
        entries = []
        for second in seconds:
            count += 1
            entries.append(make_entry(second, f"{'ab'[count % 2]} {count}"))
        ring.add(entries)
        lines.sync(standing=True)
        assert lines.shown[lines.top] is page
        moments = [row.entry.timestamp for row in lines.shown]
        assert moments[lines.top :] == sorted(moments[lines.top :])
        assert lines.total <= (HELD_FACTOR + 2) * 12


def test_a_standing_view_takes_in_no_more_than_its_bound_and_counts_the_rest() -> None:
    ring = LogRing(max_entries=10)
    ring.add(make_entry(at, str(at)) for at in range(10))
    lines = LogLines(ring)
    lines.sync(standing=False)
    for start in range(10, 1_000, 5):
        ring.add(make_entry(at, str(at)) for at in range(start, start + 5))
        lines.sync(standing=True)
    assert texts(lines)[0] == "0"
    assert lines.total <= HELD_FACTOR * 10 + 5
    assert lines.unread > 900
    lines.sync(standing=False)
    assert texts(lines) == [str(at) for at in range(990, 1_000)]
    assert lines.unread == 0


def test_another_filter_keeps_the_place() -> None:
    ring = LogRing()
    ring.add(make_entry(at, f"{'even' if at % 2 == 0 else 'odd'} {at}") for at in range(100))
    lines = LogLines(ring)
    lines.sync(standing=False)
    lines.top = 50
    lines.set_filter(parse_filter("odd"))
    assert lines.shown[lines.top].entry.text == "odd 51"
    lines.set_filter(parse_filter(""))
    assert lines.shown[lines.top].entry.text == "odd 51"
    lines.set_filter(parse_filter("nothing"))
    assert lines.shown == []
    lines.set_filter(parse_filter(""))
    assert len(lines.shown) == 100


def test_finding_goes_both_ways() -> None:
    ring = LogRing()
    ring.add(make_entry(at, str(at % 10)) for at in range(100))
    lines = LogLines(ring)
    lines.sync(standing=False)
    assert lines.find(lambda row: row.entry.text == "3", 50, 1) == 53
    assert lines.find(lambda row: row.entry.text == "3", 50, -1) == 43
    assert lines.find(lambda row: row.entry.text == "x", 50, 1) is None


def test_fifty_thousand_lines_are_taken_in_quickly() -> None:
    ring = LogRing(max_entries=50_000)
    lines = LogLines(ring)
    spent = 0.0
    for start in range(0, 100_000, 12_500):
        ring.add(
            make_entry(at / 1000, f"line {at} of the trainer")
            for at in range(start, start + 12_500)
        )
        began = time.process_time()
        lines.sync(standing=False)
        spent += time.process_time() - began
    assert len(lines.shown) == 50_000
    assert spent < 2, "100,000 lines must cost the view far less than two seconds"


def test_many_lines_are_searched_slice_by_slice_the_newest_first() -> None:
    ring = LogRing()
    count = 3 * SLICE
    ring.add(make_entry(at, f"{'even' if at % 2 == 0 else 'odd'} {at}") for at in range(count))
    lines = LogLines(ring)
    lines.sync(standing=False)
    lines.top = 100
    lines.set_filter(parse_filter("odd"))
    assert lines.unsearched
    assert texts(lines)[-1] == f"odd {count - 1}"
    assert len(lines.shown) == SLICE // 2
    ring.add([make_entry(count, "odd new"), make_entry(50.5, "odd late")])
    lines.sync(standing=True)
    slices = 1
    while lines.unsearched:
        lines.search_on()
        slices += 1
    assert slices <= 4
    assert len(lines.shown) == count // 2 + 2
    assert lines.shown[lines.top].entry.text == "odd 101"
    moments = [row.entry.timestamp for row in lines.shown]
    assert moments == sorted(moments)
    lines.set_filter(parse_filter(""))
    assert len(lines.shown) == count + 2
