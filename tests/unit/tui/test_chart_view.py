"""The cursor in a chart, its stretch of time, and what is exported."""

from __future__ import annotations

import csv
import io
import json
import math

from tpudash.tui.widgets.chart import Glyphs
from tpudash.tui.widgets.chart_view import ChartView, Exported, as_csv, as_json
from tpudash.tui.widgets.utilization_pane_charts import ChartPen, ChartRequest, draw_charts, percent
from tpudash.tui.widgets.utilization_pane_export import shown_curves

SAMPLES = [(float(at), float(at % 100)) for at in range(0, 3_600, 10)]
NOW = 3_600.0


def drawn(view: ChartView, glyphs: Glyphs = Glyphs.BLOCK) -> list[str]:
    request = ChartRequest("cpu", "demo", SAMPLES, percent, 0.0, 100.0)
    pen = ChartPen(NOW, glyphs, view)
    return ["".join(span.text for span in row) for row in draw_charts([request], 80, 10, pen)]


def cursor_of(view: ChartView) -> float | None:
    return view.cursor


def test_the_cursor_goes_from_sample_to_sample_and_is_let_go_at_the_end() -> None:
    view = ChartView()
    view.move(1, SAMPLES)
    assert cursor_of(view) is None
    view.move(-1, SAMPLES)
    view.move(-1, SAMPLES)
    assert cursor_of(view) == 3_580
    assert view.read(SAMPLES) == 80
    view.move(1, SAMPLES)
    assert cursor_of(view) == 3_590
    view.move(1, SAMPLES)
    assert cursor_of(view) is None
    view.move(-1, [])
    assert view.read([]) is None


def test_the_read_out_names_value_and_time_and_a_gap_has_none() -> None:
    view = ChartView(cursor=3_000.0)
    rows = drawn(view)
    assert "cpu 0% at 01-01 00:50:00" in rows[0]
    assert "▲" in rows[-1]
    assert "^" in drawn(view, Glyphs.ASCII)[-1]
    gap = [(0.0, 1.0), (10.0, 1.0), (20.0, 1.0), (500.0, 1.0)]
    assert ChartView(cursor=250.0).read(gap) is None
    assert ChartView(cursor=500.0).read(gap) == 1.0


def test_zoom_goes_by_round_stretches_and_keeps_the_cursor_in_sight() -> None:
    view = ChartView()
    assert view.span(SAMPLES, NOW) == 3_600
    view.zoom(1, SAMPLES, NOW)
    assert view.window_s == 1_800
    for _ in range(20):
        view.zoom(1, SAMPLES, NOW)
    assert view.window_s == 60
    view.cursor = 1_000.0
    end = view.end(SAMPLES, NOW, 60)
    assert end - 60 <= 1_000 <= end
    assert "▲" in drawn(view)[-1]
    assert "now" not in drawn(view)[-1]
    for _ in range(20):
        view.zoom(-1, SAMPLES, NOW)
    assert view.window_s == 7 * 86_400


def test_one_chart_may_have_all_the_room() -> None:
    request = ChartRequest("cpu", "demo", SAMPLES, percent, 0.0, 100.0)
    pen = ChartPen(NOW, Glyphs.BRAILLE, ChartView(is_full=True))
    rows = draw_charts([request] * 3, 120, 30, pen)
    assert len(rows) == 30
    assert "".join(span.text for span in rows[0]).count("cpu") == 1


def test_no_point_and_one_point_are_drawn_as_such() -> None:
    pen = ChartPen(NOW, Glyphs.BLOCK)
    nothing = draw_charts([ChartRequest("cpu", "", [], percent)], 60, 8, pen)
    assert "no values yet" in "".join(span.text for row in nothing for span in row)
    one = draw_charts([ChartRequest("cpu", "", [(NOW - 5, 50.0)], percent)], 60, 8, pen)
    assert "cpu 50%" in "".join(span.text for span in one[0])


def test_what_is_shown_is_exported_in_both_forms() -> None:
    request = ChartRequest("loss, raw", "demo", [*SAMPLES, (3_595.0, math.nan)], percent, unit="1")
    (curve,) = shown_curves([request, ChartRequest("x", "", [], percent)], ChartView(60.0), NOW)
    rows = list(csv.DictReader(io.StringIO(as_csv([curve]))))
    assert len(rows) == len(json.loads(as_json([curve]))) == 7
    assert rows[0] == {
        "time": "1970-01-01T00:59:00Z", "figure": "loss, raw", "of": "demo", "unit": "1",
        "value": "40.0",
    }  # fmt: skip
    assert json.loads(as_json([curve]))[-1]["value"] is None
    assert as_csv([Exported("a", "b", "1", [])]) == "time,figure,of,unit,value\n"
