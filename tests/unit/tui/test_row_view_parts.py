"""Columns that fit, cells that changed, words that match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tpudash.tui.widgets.row_view import Column, columns_that_fit, header_of
from tpudash.tui.widgets.scroll_marks import scroll_marks
from tpudash.tui.widgets.span_view import Span, Spans, changed_cells, cut_spans, fit, wrap_words
from tpudash.tui.widgets.word_filter import matches

COLUMNS = (
    Column("NAME", 10, grow=1),
    Column("STATE", 8, rank=1),
    Column("MORE", 8, rank=3),
    Column("LESS", 8, rank=2),
)


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (37, ["NAME", "STATE", "MORE", "LESS"]),
        (36, ["NAME", "STATE", "LESS"]),
        (27, ["NAME", "STATE"]),
        (18, ["NAME"]),
        (3, ["NAME"]),
    ],
)
def test_columns_are_left_out_by_rank_and_the_rest_fills_the_row(
    width: int, titles: list[str]
) -> None:
    chosen = columns_that_fit(COLUMNS, width)
    assert [column.title for column in chosen] == titles
    row = "".join(span.text for span in header_of(chosen))
    assert cell_len(row) == max(width, 1)


@given(st.text(max_size=40), st.integers(0, 30), st.booleans())
def test_fitting_gives_exactly_the_width(text: str, width: int, right: bool) -> None:
    printable = "".join(character for character in text if character.isprintable())
    assert cell_len(fit(printable, width, right=right)) == width


SPANS = st.lists(
    st.builds(Span, st.text(st.sampled_from("ab漢 "), max_size=6), st.sampled_from(["", "x"])),
    max_size=6,
).map(tuple)


@given(SPANS, st.integers(1, 30))
def test_a_cut_row_is_exactly_as_wide(spans: Spans, width: int) -> None:
    assert sum(cell_len(span.text) for span in cut_spans(spans, width)) == width


def cells_of(spans: Spans) -> list[tuple[str, str, bool]]:
    found = []
    for span in spans:
        for character in span.text:
            found += [(character, span.variable, span.bold)] * cell_len(character)
    return found


@given(SPANS, SPANS)
def test_everything_outside_the_changed_cells_is_the_same(old: Spans, new: Spans) -> None:
    start, end = changed_cells(old, new)
    before, after = cells_of(old), cells_of(new)
    assert before[:start] == after[:start]
    assert before[end:] == after[end:]


def test_only_the_cell_that_changed_is_in_the_range() -> None:
    old = (Span("name  "), Span("$1.00"), Span("  spot"))
    new = (Span("name  "), Span("$1.01"), Span("  spot"))
    assert changed_cells(old, new) == (6, 11)


def test_words_are_wrapped_and_long_ones_cut() -> None:
    assert wrap_words("one two three", 7) == ["one two", "three"]
    assert wrap_words("unbelievable", 5) == ["unbe…"]
    assert wrap_words("", 5) == []


@pytest.mark.parametrize(
    ("typed", "is_shown"),
    [
        ("", True),
        ("DEMO", True),
        ("demo spot", True),
        ("demo v3", False),
        ("!v3", True),
        ("!", True),
    ],
)
def test_words_of_a_filter(typed: str, is_shown: bool) -> None:
    assert matches(typed, "demo-1 v2-8 spot") is is_shown


@given(st.integers(1, 60), st.integers(0, 10_000), st.integers(0, 10_000))
def test_the_scroll_mark_is_always_there_where_it_is_needed(
    height: int, total: int, first: int
) -> None:
    last = min(total - 1, first + height - 1)
    marks = scroll_marks(height, total=total, first=min(first, last), last=last, plain=True)
    assert len(marks) == height
    visible = last - min(first, last) + 1
    assert ("#" in marks) == (visible < total)


def test_the_scroll_mark_stands_at_both_ends() -> None:
    assert scroll_marks(4, total=100, first=0, last=3, plain=True) == ["#", " ", " ", " "]
    assert scroll_marks(4, total=100, first=96, last=99, plain=True) == [" ", " ", " ", "#"]
