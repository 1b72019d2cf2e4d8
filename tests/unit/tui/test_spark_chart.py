"""Spark rows and charts: few bytes, and a gap is a gap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tpudash.tui.widgets.chart import Frame, Glyphs, draw_chart
from tpudash.tui.widgets.spark import BARS, PLAIN_BARS, sorted_into_cells, spark_row, usual_distance

VALUES = st.lists(st.none() | st.floats(), max_size=150)


def test_a_row_of_bars_rises_with_its_values() -> None:
    assert spark_row([0, 1, 2, 3, 4, 5, 6, 7], 8) == BARS
    assert spark_row([0, 1, 2, 3, 4, 5, 6, 7], 8, plain=True) == PLAIN_BARS
    assert spark_row([0, 50, 100], 5, low=0, high=100) == "  ▁▅█"
    assert spark_row([5, 5], 2) == "▁▁"


def test_nothing_known_and_zero_look_different() -> None:
    assert spark_row([0, None, 0], 3, low=0, high=100) == "▁ ▁"
    assert spark_row([None, math.nan, math.inf], 3) == "   "


@given(VALUES, st.integers(0, 120), st.booleans())
def test_a_row_is_exactly_as_wide_as_it_should_be(
    values: list[float | None],
    width: int,
    plain: bool,
) -> None:
    row = spark_row(values, width, plain=plain)
    assert cell_len(row) == width
    assert not plain or row.isascii()


def test_a_row_of_110_bars_is_a_few_hundred_bytes() -> None:
    row = spark_row([math.sin(at / 9) for at in range(110)], 110)
    assert len(row.encode()) <= 110 * 3
    assert "\x1b" not in row


def test_samples_are_sorted_into_cells_of_time() -> None:
    samples = [(float(at), float(at)) for at in range(10)]
    assert sorted_into_cells(samples, 0, 10, 5) == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert sorted_into_cells([], 0, 10, 2) == [None, None]
    assert sorted_into_cells(samples, 5, 5, 2) == [None, None]
    assert sorted_into_cells([(1, math.nan)], 0, 10, 2) == [None, None]


def test_a_gap_stays_a_gap_and_usual_distances_are_joined() -> None:
    samples = [(at, 1.0) for at in (0, 10, 20, 30, 70, 80, 90)]
    cells = sorted_into_cells(samples, 0, 100, 50)
    assert usual_distance(samples) == 10
    assert cells[0:16] == [1.0] * 16
    assert cells[16:35] == [None] * 19
    assert cells[35:46] == [1.0] * 11


FRAME = Frame(0, 100, lambda value: f"{value:g}%", floor=0, ceiling=100, left="-100s", right="now")


@pytest.mark.parametrize("glyphs", list(Glyphs))
def test_a_chart_has_axis_units_and_time(glyphs: Glyphs) -> None:
    rows = draw_chart([(at, at) for at in range(0, 101, 5)], 40, 8, FRAME, glyphs)
    assert len(rows) == 8
    assert all(cell_len(row.label + row.plot) == 40 for row in rows)
    assert rows[0].label == "100% "
    assert rows[6].label == "  0% "
    assert rows[7].plot.startswith("-100s ")
    assert rows[7].plot.endswith(" now")
    assert rows[0].plot[-1] != " "
    assert rows[6].plot[0] != " "
    assert rows[0].plot[0] == " "
    if glyphs is Glyphs.ASCII:
        assert all(row.plot.isascii() for row in rows)


@pytest.mark.parametrize("glyphs", list(Glyphs))
def test_nothing_is_drawn_in_a_gap(glyphs: Glyphs) -> None:
    samples = [(at, 50.0) for at in (*range(0, 30, 2), *range(70, 101, 2))]
    plots = [row.plot for row in draw_chart(samples, 45, 6, FRAME, glyphs)[:-1]]
    width = len(plots[0])
    drawn = {column for plot in plots for column in range(width) if plot[column] != " "}
    assert 0 in drawn
    assert width - 1 in drawn
    assert not drawn & set(range(int(width * 0.35), int(width * 0.65)))


@given(
    st.lists(st.tuples(st.floats(-10, 110), st.floats()), max_size=40),
    st.integers(0, 60),
    st.integers(0, 12),
    st.sampled_from(list(Glyphs)),
)
def test_any_samples_fit_into_any_size(
    samples: list[tuple[float, float]], width: int, height: int, glyphs: Glyphs
) -> None:
    frame = Frame(0, 100, lambda value: f"{value:.2g}", left="-100s", right="now")
    rows = draw_chart(samples, width, height, frame, glyphs)
    assert len(rows) <= height
    assert all(cell_len(row.label + row.plot) == width for row in rows)


def test_values_without_measure_are_drawn_at_the_edges() -> None:
    frame = Frame(0, 10, lambda value: f"{value:g}")
    rows = draw_chart([(0, -1.7e308), (5, 1.7e308), (9, 3.0)], 20, 6, frame, Glyphs.BLOCK)
    assert len(rows) == 6


def test_a_constant_is_a_level_line() -> None:
    frame = Frame(0, 10, lambda value: f"{value:g}")
    rows = draw_chart([(at, 7.0) for at in range(11)], 20, 6, frame, Glyphs.BLOCK)
    drawn = [row.plot for row in rows[:-1] if row.plot.strip()]
    assert len(drawn) == 1
    assert set(drawn[0]) in ({"▀"}, {"▄"})
