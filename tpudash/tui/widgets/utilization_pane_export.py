"""Saving the curves that are shown, off the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tpudash.tui.widgets.chart_view import ChartView, Exported, as_csv, as_json
from tpudash.tui.widgets.log_saving import append, file_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from textual.app import App

    from tpudash.tui.widgets.utilization_pane_charts import ChartRequest


def shown_curves(requests: Sequence[ChartRequest], view: ChartView, now: float) -> list[Exported]:
    """Return the curves of the charts, within the stretch of time that is shown."""
    curves = []
    for one in requests:
        span = view.span(one.samples, now)
        end = view.end(one.samples, now, span)
        inside = [sample for sample in one.samples if end - span <= sample[0] <= end]
        if inside:
            curves.append(Exported(one.title, one.about, one.unit, inside))
    return curves


def folder_of(app: App[None]) -> Path | None:
    """Return where to save, or None where nothing is saved, as in watch mode."""
    file: Path | None = getattr(getattr(app, "settings", None), "copy_file", None)
    return None if file is None else file.parent / "charts"


async def save_curves(
    folder: Path, name: str, curves: Sequence[Exported], now: datetime
) -> tuple[str, bool]:
    """Save curves as CSV and JSON; returns what to say, and whether it went well."""
    path = file_for(folder, name, now).with_suffix("")
    table, data = path.with_suffix(".csv"), path.with_suffix(".json")
    try:
        for file, text in ((table, as_csv(curves)), (data, as_json(curves))):
            file.unlink(missing_ok=True)
            await asyncio.to_thread(append, file, text)
    except OSError as error:
        return (f"{path} can't be written: {error.strerror}", False)
    count = sum(len(curve.samples) for curve in curves)
    return (f"Saved {count:,} points in {table} and {data.name}", True)
