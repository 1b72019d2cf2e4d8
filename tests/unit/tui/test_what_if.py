"""The table of types in the launch form."""

from __future__ import annotations

from tpudash.cost.prices import PriceBook
from tpudash.cost.what_if import what_if
from tpudash.domain.node import Scheduling
from tpudash.tui.widgets.what_if import what_if_lines

ROWS = what_if("us-central1-b", Scheduling.SPOT, PriceBook.bundled())


def test_the_chosen_type_is_marked_among_its_neighbours() -> None:
    lines = what_if_lines(ROWS, "v3-8", most=5)
    marked = [line for line in lines if line.startswith(">")]
    assert len(marked) == 1
    assert marked[0].split()[:6] == [">", "v3-8", "4", "128", "GiB", "492"]
    assert "$2.04~" in marked[0]
    assert len(lines) == 7
    assert lines[-1].startswith("~ example")


def test_every_line_fits_a_narrow_form_in_ascii() -> None:
    lines = what_if_lines(ROWS, "v2-8", plain=True)
    assert all(line.isascii() and len(line) <= 64 for line in lines)


def test_a_type_that_is_not_there_marks_nothing() -> None:
    assert not [line for line in what_if_lines(ROWS, "v9-8") if line.startswith(">")]
    assert what_if_lines((), "v2-8") == [
        "  " + "TYPE           CHIPS      HBM     PEAK       $/H $/H PER TF"
    ]
