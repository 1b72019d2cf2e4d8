"""A log view mirrors the log, and while it stands still its lines stay where they are."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudash.domain.log import LogEntry, Severity
from tpudash.store.log_file import CHUNK, LogFile
from tpudash.store.log_ring import LogRing
from tpudash.tui.widgets.log_view_filter import parse_filter, parse_search
from tpudash.tui.widgets.log_view_find import find_mark, find_text
from tpudash.tui.widgets.log_view_model import LogLines, Spot

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


def make_entry(second: float, text: str, **more: Any) -> LogEntry:
    severity = more.pop("severity", Severity.INFO)
    moment = NOW + timedelta(seconds=second)
    return LogEntry(moment, severity, text, insert_id=text + str(more.get("worker_id", "")), **more)


def texts(lines: LogLines) -> list[str]:
    return [row.entry.text for _, row in lines.rows_from(lines.first())]


def top_text(lines: LogLines) -> str:
    return "" if lines.top is None else lines.row(lines.top).entry.text


def spot(lines: LogLines, at: int) -> Spot:
    found = [place for place, _ in lines.rows_from(lines.first())][at]
    assert isinstance(found, Spot)
    return found


def all_searched(lines: LogLines) -> None:
    while lines.is_searching:
        lines.search_on()


BATCHES = st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=12)


def batches_of(batches: list[list[int]]) -> list[list[LogEntry]]:
    numbers = iter(range(100, 1_000))
    return [
        [make_entry(second, f"{'ab'[(n := next(numbers)) % 2]} {n}") for second in seconds]
        for seconds in batches
    ]


@given(BATCHES, st.sampled_from(["", "a", "!a"]))
def test_a_following_view_shows_what_the_ring_holds(batches: list[list[int]], typed: str) -> None:
    ring = LogRing(max_entries=12)
    lines = LogLines(ring)
    lines.set_filter(parse_filter(typed))
    for entries in batches_of(batches):
        ring.add(entries)
        lines.sync(standing=False)
        wanted = [
            entry.text for entry in ring if not typed or (("a" in entry.text) == (typed == "a"))
        ]
        assert texts(lines) == wanted
        assert lines.total == len(ring)
        assert lines.count == len(wanted)


@given(BATCHES, st.integers(0, 11), st.sampled_from(["", "a"]))
@settings(max_examples=200)
def test_a_standing_view_keeps_its_line(batches: list[list[int]], top: int, typed: str) -> None:
    ring = LogRing(max_entries=12)
    ring.add(make_entry(10 + at, f"a {at}") for at in range(12))
    lines = LogLines(ring)
    lines.set_filter(parse_filter(typed))
    lines.sync(standing=True)
    lines.top = spot(lines, top)
    line = top_text(lines)
    lines.hold(standing=True)
    for entries in batches_of(batches):
        ring.add(entries)
        lines.sync(standing=True)
        if lines.is_lost:
            assert ring.evicted
            break
        assert top_text(lines) == line
        moments = [row.entry.timestamp for _, row in lines.rows_from(lines.first())]
        assert moments == sorted(moments)
        assert lines.total <= 24


def test_a_standing_view_holds_twice_as_much_and_says_when_its_lines_are_gone() -> None:
    ring = LogRing(max_entries=10)
    ring.add(make_entry(at, str(at)) for at in range(10))
    lines = LogLines(ring)
    lines.sync(standing=True)
    for start in range(10, 20, 5):
        ring.add(make_entry(at, str(at)) for at in range(start, start + 5))
        lines.sync(standing=True)
        assert (top_text(lines), lines.is_lost) == ("0", False)
    ring.add(make_entry(at, str(at)) for at in range(20, 40))
    lines.sync(standing=True)
    assert lines.is_lost
    lines.hold(standing=False)
    ring.add([make_entry(40, "40")])
    lines.sync(standing=False)
    assert texts(lines) == [str(at) for at in range(31, 41)]


def test_another_filter_keeps_the_place() -> None:
    ring = LogRing()
    ring.add(make_entry(at, f"{'even' if at % 2 == 0 else 'odd'} {at}") for at in range(100))
    lines = LogLines(ring)
    lines.sync(standing=False)
    lines.top = spot(lines, 50)
    lines.set_filter(parse_filter("odd"))
    assert top_text(lines) == "odd 51"
    lines.set_filter(parse_filter("nothing"))
    assert texts(lines) == []
    lines.set_filter(parse_filter(""))
    assert lines.count == 100
    assert top_text(lines) == "even 50"


def test_many_lines_are_searched_slice_by_slice_the_newest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tpudash.tui.widgets.log_view_model.SLICE_S", 0.0)
    ring = LogRing()
    count = 12_000
    ring.add(make_entry(at, f"{'even' if at % 2 == 0 else 'odd'} {at}") for at in range(count))
    lines = LogLines(ring)
    lines.sync(standing=False)
    all_searched(lines)
    lines.top = spot(lines, 100)
    lines.set_filter(parse_filter("odd"))
    assert lines.is_searching
    last = lines.last()
    assert last is not None
    assert lines.row(last).entry.text == f"odd {count - 1}"
    assert lines.count < count // 2
    ring.add([make_entry(count, "odd new"), make_entry(50.5, "odd late")])
    lines.sync(standing=True)
    all_searched(lines)
    assert lines.count == count // 2 + 2
    assert top_text(lines) == "odd 101"
    moments = [row.entry.timestamp for _, row in lines.rows_from(lines.first())]
    assert moments == sorted(moments)


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ("severity:error", 10),
        ("worker:3", 25),
        ("!worker:3", 75),
        ("worker:3 severity:error", 5),
        ("NUMBER 1", 19),
        ("/number [12]$/", 2),
        ("!/number/", 0),
        ('"number 99"', 1),
    ],
)
def test_columns_bytes_and_texts_give_what_every_line_by_itself_gives(
    typed: str, count: int
) -> None:
    ring = LogRing()
    ring.add(
        make_entry(
            at,
            f"Number {at}",
            worker_id=str(at % 4),
            severity=Severity.ERROR if at % 10 == 7 else Severity.INFO,
        )
        for at in range(100)
    )
    lines = LogLines(ring)
    lines.sync(standing=False)
    rows = [row for _, row in lines.rows_from(lines.first())]
    wanted = [row.entry.text for row in rows if parse_filter(typed).accepts(row)]
    lines.set_filter(parse_filter(typed))
    assert texts(lines) == wanted
    assert len(wanted) == count


def test_context_shows_lines_beside_those_that_match() -> None:
    ring = LogRing()
    ring.add(make_entry(at, f"line {at}") for at in range(30))
    lines = LogLines(ring)
    lines.sync(standing=False)
    lines.set_filter(parse_filter('"line 15"'))
    lines.set_context(2)
    assert texts(lines) == [f"line {at}" for at in range(13, 18)]
    beside = [row.is_context for _, row in lines.rows_from(lines.first())]
    assert beside == [True, True, False, True, True]
    ring.add([make_entry(30, 'another "line 15"')])
    lines.sync(standing=False)
    assert texts(lines)[-3:] == ["line 28", "line 29", 'another "line 15"']


TRACE = (
    "Traceback (most recent call last):",
    '  File "x.py", line 1',
    "    go()",
    "ValueError: no",
)


def test_no_line_of_a_file_is_passed_over_because_of_a_very_long_one(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_bytes(
        b"first\n"
        + b"x" * (30 * CHUNK)
        + b"\n"
        + b"".join(b"after %d\n" % at for at in range(40 * CHUNK // 10))
    )
    lines = LogLines(LogFile(path))
    lines.sync(standing=True)
    rows = [row.text for _, row in islice(lines.rows_from(lines.first()), 5)]
    assert [row[:8] for row in rows] == ["first", "xxxxxxxx", "after 0", "after 1", "after 2"]
    newer = lines.spot_of(path.read_bytes().index(b"after 0"), 0)
    assert newer is not None
    older = lines.before(newer)
    assert older is not None
    assert lines.row(older).text.startswith("xxx")


def test_a_traceback_is_one_line_until_it_is_opened() -> None:
    ring = LogRing()
    entries = [make_entry(at, text, stream="stderr") for at, text in enumerate(TRACE)]
    ring.add([make_entry(-1, "before", stream="stderr"), *entries, make_entry(9, "after")])
    lines = LogLines(ring)
    lines.sync(standing=False)
    rows = [row for _, row in lines.rows_from(lines.first())]
    assert [row.text for row in rows] == [
        "before",
        "ValueError: no (+3 lines) Traceback (most recent call last):",
        "after",
    ]
    assert lines.members_of(rows[1]) == list(TRACE[1:])
    lines.set_filter(parse_filter("go()"))
    assert texts(lines) == ["    go()"]
    lines.set_filter(parse_filter(""))
    lines.set_folding(on=False)
    assert texts(lines) == ["before", *TRACE, "after"]


def test_what_all_workers_say_is_one_line_with_their_number() -> None:
    ring = LogRing()
    said = [
        make_entry(at + worker / 100, f"said {at}", worker_id=str(worker), run="r", attempt=1)
        for at in range(3)
        for worker in range(32)
    ]
    ring.add(said)
    lines = LogLines(ring)
    lines.sync(standing=False)
    rows = [row for _, row in lines.rows_from(lines.first())]
    # Who else is there is known only once it has spoken, so the first lines stay.
    assert [(row.text, row.workers) for row in rows[-2:]] == [("said 1", 32), ("said 2", 32)]
    lines.set_filter(parse_filter("worker:5"))
    assert texts(lines) == ["said 0", "said 1", "said 2"]


def run_to_end(search: Any) -> Spot | None:
    return next((found for found in search if found is not None), None)


def test_finding_goes_both_ways_and_stops() -> None:
    ring = LogRing()
    ring.add(
        make_entry(at, f"word{at % 10}", severity=Severity.ERROR if at % 10 == 3 else Severity.INFO)
        for at in range(9_000)
    )
    lines = LogLines(ring)
    lines.sync(standing=False)
    all_searched(lines)
    start = spot(lines, 4_500)
    for step, at in ((1, 4_503), (-1, 4_493)):
        assert run_to_end(find_mark(lines, "error", start, step)) == spot(lines, at)
        assert run_to_end(find_text(lines, parse_search("word3"), start, step)) == spot(lines, at)
    assert run_to_end(find_mark(lines, "checkpoint", start, 1)) is None
    assert run_to_end(find_text(lines, parse_search("nowhere"), start, -1)) is None


def test_a_search_opens_what_is_folded() -> None:
    ring = LogRing()
    ring.add(make_entry(at, text, stream="stderr") for at, text in enumerate(TRACE))
    lines = LogLines(ring)
    lines.sync(standing=False)
    assert lines.count == 1
    found = run_to_end(find_text(lines, parse_search("GO()"), Spot(0, -1), 1))
    assert found is not None
    assert lines.row(found).text == "    go()"
    assert lines.count == 2


def test_a_hundred_thousand_lines_are_taken_in_quickly() -> None:
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
    all_searched(lines)
    assert lines.count == 50_000
    assert spent < 1, "100,000 lines must cost the view far less than a second"


def test_an_expression_without_end_is_given_up() -> None:
    ring = LogRing()
    ring.add(make_entry(at, "a" * 900 + "!") for at in range(200))
    lines = LogLines(ring)
    lines.sync(standing=False)
    began = time.process_time()
    lines.set_filter(parse_filter("/(a+)+$/"))
    all_searched(lines)
    assert time.process_time() - began < 2
    assert "takes too long" in lines.filter.problem
