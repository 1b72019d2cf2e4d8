"""Rows of small bars in one style, and samples sorted into cells of time; gaps stay gaps.

One style for the whole row keeps it at a few hundred bytes, where a colour for each bar costs ten
times as much.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BARS: Final = "▁▂▃▄▅▆▇█"
PLAIN_BARS: Final = "_.:-=+*#"
GAP_PERIODS: Final = 2.5
"""Two samples further apart than so many usual distances have a gap between them."""

Sample = tuple[float, float]
"""Time in seconds, and value."""


def spark_row(
    values: Sequence[float | None],
    width: int,
    *,
    low: float | None = None,
    high: float | None = None,
    plain: bool = False,
) -> str:
    """Return the newest values as bars, exactly `width` cells; a missing value is a blank.

    Args:
        values: Oldest first; where they are fewer than the cells, the row begins with blanks.
        width: Cells of the row.
        low: Value of the lowest bar; the least value where it is not given.
        high: Value of the highest bar; the greatest value where it is not given.
        plain: Draw with ASCII only.
    """
    if width <= 0:
        return ""
    shown = [_finite(value) for value in values[-width:]]
    known = [value for value in shown if value is not None]
    if not known:
        return " " * width
    floor = min(known) if low is None else low
    span = (max(known) if high is None else high) - floor
    bars = PLAIN_BARS if plain else BARS
    row = "".join(" " if value is None else bars[_level(value - floor, span)] for value in shown)
    return row.rjust(width)


def _level(height: float, span: float) -> int:
    if span <= 0:
        return 0
    if not math.isfinite(span):
        # The values lie further apart than a number can tell.
        return len(BARS) - 1 if height > 0 else 0
    return min(len(BARS) - 1, max(0, int(height / span * len(BARS))))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def usual_distance(samples: Sequence[Sample]) -> float:
    """Return the median time between neighbouring samples, 0.0 for fewer than two."""
    between = sorted(later[0] - sooner[0] for sooner, later in pairwise(samples))
    return between[len(between) // 2] if between else 0.0


def sorted_into_cells(
    samples: Iterable[Sample], start: float, end: float, count: int
) -> list[float | None]:
    """Return one value for each of `count` equal cells of time between `start` and `end`.

    A cell with several samples shows their mean. Cells between two samples that follow each other
    at the usual distance lie on the line between them; between others they are None.
    """
    cells: list[float | None] = [None] * max(0, count)
    known = sorted(sample for sample in samples if _finite(sample[1]) is not None)
    inside = [sample for sample in known if start <= sample[0] <= end]
    if end <= start or not inside or not cells:
        return cells
    at = [min(count - 1, int((time - start) / (end - start) * count)) for time, _ in inside]
    sums: dict[int, list[float]] = {}
    for cell, (_, value) in zip(at, inside, strict=True):
        sums.setdefault(cell, []).append(value)
    for cell, values in sums.items():
        cells[cell] = sum(values) / len(values)
    longest = usual_distance(known) * GAP_PERIODS
    for first, (sooner, later) in zip(at, pairwise(inside), strict=False):
        last = min(count - 1, int((later[0] - start) / (end - start) * count))
        if last - first > 1 and later[0] - sooner[0] <= longest:
            _fill_line(cells, first, last)
    return cells


def _fill_line(cells: list[float | None], first: int, last: int) -> None:
    begin, finish = cells[first], cells[last]
    if begin is None or finish is None:
        return
    for cell in range(first + 1, last):
        cells[cell] = begin + (finish - begin) * (cell - first) / (last - first)
