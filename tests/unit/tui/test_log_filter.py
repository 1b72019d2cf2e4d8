"""What is typed in the log's filter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.domain.log import LogEntry, Severity
from tpudash.tui.widgets.log_view_filter import parse_filter
from tpudash.tui.widgets.log_view_text import row_of

NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
ROW = row_of(
    LogEntry(
        NOW,
        Severity.WARNING,
        "Loss is NaN at step 12:34, see http://x/y",
        node_id="demo-2",
        worker_id="1",
        run="demo",
        attempt=2,
        stream="stderr",
        payload={"event": "step", "step": 7, "loss": 0.5},
    ),
)


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("", True),
        ("   ", True),
        ("nan", True),
        ("NAN loss", True),
        ("nan missing", False),
        ("!nan", False),
        ("!missing", True),
        ("nan !missing", True),
        ("!", True),
        ('"is nan"', True),
        ('"nan is"', False),
        ('"is na', True),
        ("12:34", True),
        ("http://x", True),
        ("/l[aeiou]ss/", True),
        ("/^zzz/", False),
        ("!/^zzz/", True),
        ("run:demo", True),
        ("run:other", False),
        ("!run:demo", False),
        ("node:-2", True),
        ("worker:1", True),
        ("worker:11", False),
        ("attempt:2", True),
        ("attempt:1", False),
        ("stream:std", True),
        ("event:step", True),
        ("event:checkpoint", False),
        ("severity:info", True),
        ("severity:warning", True),
        ("severity:err", False),
        ("!severity:err", True),
        ("worker:", True),
        ("0.5000", True),
    ],
)
def test_which_lines_are_shown(text: str, is_shown: bool) -> None:
    assert parse_filter(text).accepts(ROW) is is_shown


@pytest.mark.parametrize(
    ("text", "said"), [("/(/", "no regular expression"), ("severity:loud", "none of default")]
)
def test_what_cannot_be_meant_is_said_and_hides_nothing(text: str, said: str) -> None:
    found = parse_filter(text)
    assert said in found.problem
    assert found.accepts(ROW)


def test_matches_are_marked_and_inverse_words_are_not() -> None:
    assert parse_filter("ab !cd /x+/").matches_in("AB cd xxx ab") == [(0, 2), (6, 9), (10, 12)]


@given(st.text(max_size=60), st.text(max_size=60))
def test_nothing_typed_is_an_error(text: str, line: str) -> None:
    row = row_of(LogEntry(NOW, Severity.INFO, line))
    found = parse_filter(text)
    assert found.accepts(row) in {True, False}
    for start, end in found.matches_in(row.text):
        assert 0 <= start < end <= len(row.text)
