"""How the user looks at charts: the stretch of time, the cursor in it, one chart or several."""

from __future__ import annotations

import csv
import io
import json
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tpudash.tui.widgets.spark import GAP_PERIODS, usual_distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tpudash.tui.widgets.spark import Sample

WINDOWS_S: Final = tuple(
    minutes * 60 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440, 4320, 10080)
)
MAX_SPAN_S: Final = WINDOWS_S[-1]


@dataclass(slots=True)
class ChartView:
    """What the keys have set.

    Attributes:
        window_s: Seconds that a chart spans, or None for all that is known.
        cursor: The moment that is read out, as POSIX time, or None.
        is_full: Whether one chart has all the room.
    """

    window_s: float | None = None
    cursor: float | None = None
    is_full: bool = False

    def span(self, samples: Sequence[Sample], now: float) -> float:
        """Return the seconds that a chart of these samples spans."""
        if self.window_s is not None:
            return self.window_s
        first = max(samples[0][0], now - MAX_SPAN_S) if samples else now
        return next((one for one in WINDOWS_S if one >= now - first), MAX_SPAN_S)

    def end(self, samples: Sequence[Sample], now: float, span: float) -> float:
        """Return the right edge: the present, or what keeps the cursor in sight."""
        newest = max(now, samples[-1][0]) if samples else now
        if self.cursor is None or self.cursor >= newest - span:
            return newest
        return min(newest, self.cursor + span / 2)

    def zoom(self, step: int, samples: Sequence[Sample], now: float) -> None:
        """Show a shorter (1) or a longer (-1) stretch of time."""
        span = self.span(samples, now)
        if step > 0:
            self.window_s = next((one for one in reversed(WINDOWS_S) if one < span), WINDOWS_S[0])
        else:
            self.window_s = next((one for one in WINDOWS_S if one > span), MAX_SPAN_S)

    def move(self, step: int, samples: Sequence[Sample]) -> None:
        """Go to the next sample on the left (-1) or right (1); right of the last one, let go."""
        times = [time for time, _ in samples]
        if not times:
            return
        if self.cursor is None:
            self.cursor = times[-1] if step < 0 else None
            return
        if step < 0:
            self.cursor = times[max(0, bisect_left(times, self.cursor) - 1)]
            return
        at = bisect_right(times, self.cursor)
        self.cursor = times[at] if at < len(times) else None

    def read(self, samples: Sequence[Sample]) -> float | None:
        """Return the value at the cursor: of the nearest sample, unless that is a gap away."""
        if self.cursor is None or not samples:
            return None
        nearest = min(samples, key=lambda sample: abs(sample[0] - (self.cursor or 0.0)))
        longest = max(1.0, usual_distance(samples) * GAP_PERIODS / 2)
        return nearest[1] if abs(nearest[0] - self.cursor) <= longest else None


def moment(time: float) -> str:
    """Return a moment for a read-out."""
    return f"{datetime.fromtimestamp(time, UTC):%m-%d %H:%M:%S}"


@dataclass(frozen=True, slots=True)
class Exported:
    """One curve as it is exported."""

    name: str
    about: str
    unit: str
    samples: Sequence[Sample]


def _rows(curves: Iterable[Exported]) -> list[dict[str, object]]:
    return [
        {
            "time": datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z"),
            "figure": curve.name,
            "of": curve.about,
            "unit": curve.unit,
            "value": value if math.isfinite(value) else None,
        }
        for curve in curves
        for time, value in curve.samples
    ]


def as_csv(curves: Iterable[Exported]) -> str:
    """Return curves as CSV, one point a row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, ("time", "figure", "of", "unit", "value"), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(curves))
    return text.getvalue()


def as_json(curves: Iterable[Exported]) -> str:
    """Return curves as a JSON list, one object a point."""
    return json.dumps(_rows(curves), indent=1) + "\n"
