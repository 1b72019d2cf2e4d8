"""Models that are served, beside the training: a row for each, and the curves of one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.serving import trouble
from tpudash.domain.run import RunState
from tpudash.domain.serving import ServingKind
from tpudash.tui.widgets.row_view import Column, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, cut_spans, fit
from tpudash.tui.widgets.utilization_pane_charts import (
    ChartRequest,
    plain_number,
    seconds,
    share,
)
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tpudash.domain.serving import ServingFigures
    from tpudash.tui.pane import ViewContext

COLUMNS: Final = (
    Column("SERVES", 14, grow=2),
    Column("STATE", 9),
    Column("REQ/S", 8, right=True),
    Column("P50", 8, right=True, rank=3),
    Column("P99", 8, right=True),
    Column("ERRORS", 7, right=True),
    Column("BATCH", 6, right=True, rank=4),
    Column("QUEUE", 6, right=True, rank=2),
    Column("HEARD", 6, right=True, rank=1),
)
MOST_ROWS: Final = 6
_FORGOTTEN: Final = timedelta(minutes=10)
_CURVES: Final[tuple[tuple[str, str, Callable[[float], str], str], ...]] = (
    ("requests/s", "requests_per_second", plain_number, "{requests}/s"),
    ("latency p99", "latency_p99_s", seconds, "s"),
    ("errors", "error_share", share, "1"),
)


def serving_rows(context: ViewContext, width: int, height: int) -> list[Spans]:
    """Return a row of titles and one for each served model, the bad ones first; or nothing.

    `width` and `height` are those of the whole pane, of which this takes a third at most.
    """
    most = min(MOST_ROWS, max(1, height // 3 - 1))
    now = context.now()
    book = context.store.serving
    found = [one for one in book.latest() if _matters(context, one, now)]
    if not found:
        return []
    words = {one.key: trouble(one, book.limits, now) for one in found}
    found.sort(key=lambda one: not words[one.key])
    columns = columns_that_fit(COLUMNS, width)
    rows = [_row(columns, one, words[one.key], now) for one in found[:most]]
    head = header_of(columns)
    if len(found) > most:
        more = f"SERVES ({len(found) - most} more)"
        head = (Span(fit(more, columns[0].width), "muted"), *head[1:])
    return [cut_spans(row, width) for row in (head, *rows)]


def _matters(context: ViewContext, figures: ServingFigures, now: datetime) -> bool:
    if figures.kind is ServingKind.ENDPOINT:
        return True
    run = context.snapshot.runs.get(figures.name)
    if run is not None:
        return run.state is RunState.SERVING
    return figures.age(now) < _FORGOTTEN


def _row(columns: Sequence[Column], figures: ServingFigures, wrong: str, now: datetime) -> Spans:
    version = f" v{safe_text(figures.version, 12)}" if figures.version else ""
    numbers = {
        "REQ/S": _text(figures.requests_per_second, plain_number),
        "P50": _text(figures.latency_p50_s, seconds),
        "P99": _text(figures.latency_p99_s, seconds),
        "ERRORS": _text(figures.error_share, _small_share),
        "BATCH": _text(figures.batch_size, plain_number),
        "QUEUE": _text(figures.queue_depth, plain_number),
        "HEARD": age(figures.time, now, step=5),
    }
    cells = {title: Span(text) for title, text in numbers.items()}
    cells["SERVES"] = Span(f"{safe_text(figures.name, 40)}{version}", "chart-bad" if wrong else "")
    cells["STATE"] = _state(figures, wrong)
    if not figures.problem:
        return row_of(columns, cells)
    # There are no figures to line up, so that the reason has their room.
    head = row_of(columns[:2], cells)
    return (*head, Span(f" {safe_text(wrong, 200)}", "chart-bad"))


def _state(figures: ServingFigures, wrong: str) -> Span:
    if figures.problem:
        return Span("no answer", "chart-bad", bold=True)
    if figures.is_ready is None:
        return Span("alarm" if wrong else "answers", "chart-bad" if wrong else "")
    if not figures.is_ready:
        return Span(safe_text(figures.state, 9) or "not ready", "chart-bad", bold=True)
    return Span("alarm", "chart-bad", bold=True) if wrong else Span("ready", "state-ready")


def serving_charts(context: ViewContext, run: str) -> list[ChartRequest]:
    """Return the curves of a run that serves; none for one that does not."""
    history = context.store.serving.of(ServingKind.RUN, run)
    if not history:
        return []
    about = safe_text(run, 40)
    return [
        ChartRequest(
            title=title,
            about=about,
            samples=[
                (one.time.timestamp(), value)
                for one in history
                if (value := getattr(one, name)) is not None
            ],
            tick=tick,
            floor=0.0,
            nothing="no requests yet",
            unit=unit,
        )
        for title, name, tick, unit in _CURVES
    ]


def _text(value: float | None, tick: Callable[[float], str]) -> str:
    return "-" if value is None else tick(value)


def _small_share(value: float) -> str:
    return f"{value:.2%}" if 0 < value < 0.1 else f"{value:.0%}"
