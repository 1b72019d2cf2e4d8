"""The charts of the utilization pane: as many beside each other as there is room for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tpudash.tui.widgets.chart import Frame, Glyphs, draw_chart
from tpudash.tui.widgets.chart_view import ChartView, moment
from tpudash.tui.widgets.span_view import Span, Spans, cut_spans, fit
from tpudash.wording.format import bytes_size, number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpudash.tui.widgets.spark import Sample

LEAST_WIDTH: Final = 36
LEAST_HEIGHT: Final = 5
"""Rows of one chart with its title and its axis of time."""
GOOD_HEIGHT: Final = 8
"""Rows that a chart should have before another one is drawn below it."""


@dataclass(frozen=True, slots=True)
class ChartRequest:
    """One chart.

    Attributes:
        title: What is shown.
        about: Whose it is, and where it comes from.
        tick: Turns a value into a short text with its unit.
        ceiling: A value that the axis has to reach, such as 100 for percent.
        unit: UCUM unit of the values, for exports.
    """

    title: str
    about: str
    samples: Sequence[Sample]
    tick: Callable[[float], str]
    floor: float | None = None
    ceiling: float | None = None
    nothing: str = "no values yet"
    unit: str = ""


def percent(value: float) -> str:
    """Return a share in percent."""
    return f"{value:.0f}%"


def share(value: float) -> str:
    """Return a fraction in percent."""
    return f"{value:.0%}"


def seconds(value: float) -> str:
    """Return a short time."""
    return f"{value * 1000:.3g}ms" if abs(value) < 1 else f"{value:.3g}s"


def plain_number(value: float) -> str:
    """Return a number as short as it can be told apart from its neighbours."""
    if value and abs(value) < 0.01:
        return f"{value:.1e}"
    return f"{value:.3g}" if abs(value) < 100 else number(value)


def size(value: float) -> str:
    """Return a number of bytes."""
    return bytes_size(value).replace("iB", "").replace(" ", "")


@dataclass(frozen=True, slots=True)
class ChartPen:
    """What charts are drawn with: the present as POSIX time, the glyphs, and the user's view."""

    now: float
    glyphs: Glyphs
    view: ChartView = field(default_factory=ChartView)


def draw_charts(
    requests: Sequence[ChartRequest], width: int, height: int, pen: ChartPen
) -> list[Spans]:
    """Return as many of the charts as fit beside and below each other, the first ones first.

    Args:
        requests: The charts, the most wanted first.
        width: Cells of a row.
        height: Rows.
        pen: The present, which is the right edge, and how the user looks at the charts.
    """
    if not requests or height < LEAST_HEIGHT or width < LEAST_HEIGHT:
        return []
    if pen.view.is_full:
        return _draw_one(requests[0], width, height, pen)
    beside = min(len(requests), max(1, (width + 2) // (LEAST_WIDTH + 2)))
    below = min(-(-len(requests) // beside), max(1, height // GOOD_HEIGHT))
    rows: list[Spans] = []
    for line in range(below):
        some = requests[line * beside : (line + 1) * beside]
        high = (height - len(rows)) // (below - line)
        each = (width - 2 * (beside - 1)) // beside
        rows += _beside([_draw_one(one, each, high, pen) for one in some], each, high)
    return rows


def _beside(charts: Sequence[Sequence[Spans]], width: int, height: int) -> list[Spans]:
    """Return charts of one width set beside each other."""
    rows: list[Spans] = []
    for y in range(height):
        spans: list[Span] = []
        for at, chart in enumerate(charts):
            spans += [Span("  ")] if at else []
            spans += chart[y] if y < len(chart) else [Span(" " * width)]
        rows.append(tuple(spans))
    return rows


def _draw_one(request: ChartRequest, width: int, height: int, pen: ChartPen) -> list[Spans]:
    title = _title(request, width, pen.view)
    if not request.samples:
        return [title, (Span(fit(request.nothing, width), "muted"),)]
    frame = replace(
        _frame(request, pen, width),
        floor=request.floor,
        ceiling=request.ceiling,
    )
    rows = draw_chart(request.samples, width, height - 1, frame, pen.glyphs)
    drawn = [(Span(row.label, "chart-axis"), Span(row.plot, "chart-line")) for row in rows[:-1]]
    plain = pen.glyphs is Glyphs.ASCII
    axis = _with_cursor(rows[-1].plot, frame, pen.view.cursor, "^" if plain else "▲")
    return [title, *drawn, (Span(rows[-1].label + axis, "chart-axis"),)]


def _with_cursor(axis: str, frame: Frame, cursor: float | None, mark: str) -> str:
    """Return the axis of time with a mark where the cursor is."""
    if cursor is None or not axis or not frame.start <= cursor <= frame.end:
        return axis
    at = min(len(axis) - 1, int((cursor - frame.start) / (frame.end - frame.start) * len(axis)))
    return axis[:at] + mark + axis[at + 1 :]


def _title(request: ChartRequest, width: int, view: ChartView) -> Spans:
    last = request.tick(request.samples[-1][1]) if request.samples else ""
    if view.cursor is not None and request.samples:
        value = view.read(request.samples)
        read = "no value" if value is None else request.tick(value)
        last = f"{read} at {moment(view.cursor)}"
    spans = (
        Span(request.title, "", bold=True),
        Span(f" {last}" if last else "", "chart-line", bold=True),
        Span(f"  {request.about}" if request.about else "", "muted"),
    )
    return cut_spans(spans, width)


def _frame(request: ChartRequest, pen: ChartPen, width: int) -> Frame:
    """Return a window of round length, so that a chart moves by whole cells and stays calm."""
    window = pen.view.span(request.samples, pen.now)
    cell = max(1.0, window / max(1, width))
    newest = pen.view.end(request.samples, pen.now, window)
    end = math.ceil(newest / cell) * cell
    is_now = newest >= pen.now
    left = f"-{_span(window)}" if is_now else moment(end - window)
    return Frame(end - window, end, request.tick, left=left, right="now" if is_now else moment(end))


def _span(window: float) -> str:
    minutes = int(window // 60)
    if minutes < 60:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 2880 else f"{minutes // 1440}d"
