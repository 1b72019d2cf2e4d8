"""Which charts there are: the curves of a run, and the measures of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.store.training_curve import CURVE_UNITS
from tpudash.store.utilization import Measure
from tpudash.tui.widgets.utilization_pane_cells import worker_name
from tpudash.tui.widgets.utilization_pane_charts import (
    ChartRequest,
    percent,
    plain_number,
    seconds,
    share,
    size,
)
from tpudash.tui.widgets.utilization_pane_curves import CURVES
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from tpudash.tui.widgets.utilization_pane_cells import WorkerRow
    from tpudash.tui.widgets.utilization_pane_curves import CurveBook


def training_charts(curves: CurveBook, run: str) -> list[ChartRequest]:
    """Return the charts of a run's own figures."""
    newest = curves.newest(run)
    about = safe_text(run, 40)
    if newest is not None and newest.step is not None:
        about += f" step {newest.step}" + (f"/{newest.target}" if newest.target else "")
    has_steps = newest is not None and newest.step is not None
    nothing = "its steps don't say" if has_steps else f"no steps of {safe_text(run, 40)} yet"
    ticks = {
        "loss": plain_number,
        "examples_per_second": plain_number,
        "step_time_s": seconds,
        "input_wait_fraction": share,
    }
    return [
        ChartRequest(
            title=title,
            about=about,
            samples=curves.samples(run, name),
            tick=ticks[name],
            floor=None if name == "loss" else 0.0,
            nothing=nothing,
            unit=CURVE_UNITS[name],
        )
        for name, title in CURVES.items()
    ]


def worker_charts(row: WorkerRow, note: str) -> list[ChartRequest]:
    """Return the charts of one worker; `note` says what the chips are, if not real."""
    name = worker_name(row).text
    accelerator = f"{note}, {name}" if note else name
    requests = [
        ChartRequest(
            title, about, row.history(measure), percent, floor=0.0, ceiling=100.0, unit="%"
        )
        for title, measure, about in (
            ("duty cycle", Measure.DUTY_CYCLE, accelerator),
            ("host CPU", Measure.HOST_CPU, name),
        )
    ]
    memories = (("host memory", Measure.HOST_MEMORY), ("HBM used", Measure.HBM_USED))
    requests += [
        ChartRequest(title, name, history, size, floor=0.0, unit="By")
        for title, measure in memories
        if (history := row.history(measure))
    ]
    return requests
