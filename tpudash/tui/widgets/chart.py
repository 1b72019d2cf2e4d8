"""A line chart as rows of text: axis, units, last value; gaps stay gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from tpudash.tui.widgets.spark import Sample, sorted_into_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Glyphs(StrEnum):
    """What a line is drawn with, from the most widely supported to the finest."""

    ASCII = "ascii"
    BLOCK = "block"
    BRAILLE = "braille"


class _Dots(NamedTuple):
    """How one character is divided into dots, and the characters by the bits of their dots.

    Bit `row * columns + column` stands for a dot, rows counted from the top.
    """

    columns: int
    rows: int
    characters: str


def _braille() -> str:
    # Unicode numbers the dots down the left column (1, 2, 3), then the right (4, 5, 6), then 7, 8.
    bit_of_dot = (0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80)
    return " " + "".join(
        chr(0x2800 + sum(bit for dot, bit in enumerate(bit_of_dot) if mask >> dot & 1))
        for mask in range(1, 256)
    )


_DOTS: Final = {
    Glyphs.ASCII: _Dots(1, 2, " '.:"),
    Glyphs.BLOCK: _Dots(2, 2, " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"),
    Glyphs.BRAILLE: _Dots(2, 4, _braille()),
}
MIN_PLOT_WIDTH: Final = 4
HUGE: Final = 1e300
"""Values beyond this have no say in the limits of an axis, for their distance has no number."""


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One row of a chart; `label` and `plot` together are as wide as the chart."""

    label: str
    plot: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What a chart is drawn in.

    Attributes:
        start: Time of the left edge, in the unit of the samples.
        end: Time of the right edge.
        floor: A value that the axis has to reach down to, or None.
        ceiling: A value that the axis has to reach up to, or None.
        tick: Turns a value of the axis into a short text with its unit.
        left: What is written below the left edge, such as `-30m`.
        right: What is written below the right edge, such as `now`.
    """

    start: float
    end: float
    tick: Callable[[float], str]
    floor: float | None = None
    ceiling: float | None = None
    left: str = ""
    right: str = ""


def draw_chart(
    samples: Sequence[Sample], width: int, height: int, frame: Frame, glyphs: Glyphs
) -> list[ChartRow]:
    """Return a chart of `height` rows, the last of which is the axis of time."""
    rows = max(1, height - 1)
    low, high = _limits(samples, frame)
    labels = _labels(rows, low, high, frame)
    room = max((len(label) for label in labels), default=0) + 1
    if width - room < MIN_PLOT_WIDTH:
        room = 0
    plot_width = max(0, width - room)
    dots = _DOTS[glyphs]
    cells = sorted_into_cells(samples, frame.start, frame.end, plot_width * dots.columns)
    lines = _plot(cells, plot_width, rows, low, high, dots)
    drawn = [
        ChartRow(f"{label:>{room - 1}} " if room else "", line)
        for label, line in zip(labels, lines, strict=True)
    ]
    axis = _time_axis(plot_width, frame, plain=glyphs is Glyphs.ASCII)
    return [*drawn, ChartRow(" " * room, axis)][:height]


def _limits(samples: Sequence[Sample], frame: Frame) -> tuple[float, float]:
    """Return the lowest and the highest value of the axis: round, and around all samples."""
    known = [
        value for time, value in samples if abs(value) < HUGE and frame.start <= time <= frame.end
    ]
    known += [edge for edge in (frame.floor, frame.ceiling) if edge is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low > 0 and low < high / 3:
        low = 0.0
    if high - low <= abs(high) * 1e-9:
        high = low + (abs(low) or 1.0)
    step = _round_step((high - low) / 4)
    bottom = low if frame.floor == low else math.floor(low / step) * step
    top = high if frame.ceiling == high else math.ceil(high / step) * step
    return bottom, top


def _round_step(size: float) -> float:
    """Return the least of 1, 2, 2.5, 5, 10 times a power of ten that is not below a size."""
    power = 10.0 ** math.floor(math.log10(size)) if size > 0 else 1.0
    return next((factor * power for factor in (1, 2, 2.5, 5) if factor * power >= size), 10 * power)


def _labels(rows: int, low: float, high: float, frame: Frame) -> list[str]:
    """Return the label of each row: top and bottom, and the middle where there is room."""
    labels = [""] * rows
    labels[-1] = frame.tick(low)
    if rows > 1:
        labels[0] = frame.tick(high)
    if rows >= 5 and rows % 2:
        labels[rows // 2] = frame.tick((low + high) / 2)
    return labels


def _plot(
    cells: Sequence[float | None], width: int, rows: int, low: float, high: float, dots: _Dots
) -> list[str]:
    masks = [[0] * width for _ in range(rows)]
    most = rows * dots.rows - 1
    before: int | None = None
    for column, value in enumerate(cells):
        if value is None:
            before = None
            continue
        place = min(1.0, max(0.0, (value - low) / (high - low)))
        level = most - round(place * most)
        for dot in _between(before, level):
            bit = dot % dots.rows * dots.columns + column % dots.columns
            masks[dot // dots.rows][column // dots.columns] |= 1 << bit
        before = level
    return ["".join(dots.characters[mask] for mask in row) for row in masks]


def _between(before: int | None, level: int) -> range:
    """Return the dots of one column that join it to the column before."""
    if before is None or abs(before - level) <= 1:
        return range(level, level + 1)
    return range(before + 1, level + 1) if before < level else range(level, before)


def _time_axis(width: int, frame: Frame, *, plain: bool) -> str:
    line = ("-" if plain else "─") * width
    if len(frame.left) + len(frame.right) + 4 > width:
        return line
    left, right = f"{frame.left} ".lstrip(), f" {frame.right}".rstrip()
    middle = line[: width - len(left) - len(right)]
    return f"{left}{middle}{right}"
