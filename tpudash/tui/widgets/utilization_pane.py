"""The utilization pane: how busy each worker is, and how the training goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tpudash.store.snapshot import METRICS, NODES, SourceStatus
from tpudash.store.utilization import read_utilization
from tpudash.tui.pane import Pane, PaneId, Subject
from tpudash.tui.widgets.chart import Glyphs
from tpudash.tui.widgets.chart_view import ChartView
from tpudash.tui.widgets.empty_reason import nothing_runs, source_problem
from tpudash.tui.widgets.row_view import RowView, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, cut_spans, wrap_words
from tpudash.tui.widgets.utilization_pane_cells import (
    CELLS,
    COLUMNS,
    WorkerRow,
    cell_of,
    rows_of,
    spark_of,
    worker_key,
    worker_name,
    workers_of,
)
from tpudash.tui.widgets.utilization_pane_charts import (
    LEAST_HEIGHT,
    ChartPen,
    ChartRequest,
    draw_charts,
)
from tpudash.tui.widgets.utilization_pane_curves import CurveBook
from tpudash.tui.widgets.utilization_pane_derived import derived_line
from tpudash.tui.widgets.utilization_pane_export import folder_of, save_curves, shown_curves
from tpudash.tui.widgets.utilization_pane_requests import training_charts, worker_charts
from tpudash.tui.widgets.utilization_pane_serving import serving_charts, serving_rows
from tpudash.tui.widgets.word_filter import matches
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from textual.app import ComposeResult
    from textual.notifications import SeverityLevel

    from tpudash.domain.node import Node
    from tpudash.store.changes import ChangeSet
    from tpudash.store.utilization import NodeUtilization

CHART_INTERVAL_S: Final = 2.0
EMULATED: Final = "emulated on CPU"
BUSY_SHARE: Final = 20


class UtilizationPane(Pane):
    """Workers and training curves."""

    pane_id: ClassVar[PaneId] = PaneId.UTILIZATION
    title: ClassVar[str] = "Utilization"
    help_text: ClassVar[str] = (
        "One row for each worker: duty cycle and TensorCore of the accelerator, HBM, host CPU and "
        "memory, network. What has no value says why: no work (nothing runs on the accelerator), "
        "not yet (the node is younger than the metrics' delay), no agent (the trainer's agent is "
        "silent), stale (the last value is old), no data (never seen). ! marks a worker far below "
        "the others of its node. Models that are served have rows of their own below: rate, "
        "latency, errors, batch, queue. The charts belong to the selected row; "
        "{charts-next} shows the next ones, {charts-glyphs} draws them with blocks, braille or "
        "ASCII. {charts-full} shows one chart alone, {charts-left} and {charts-right} read it at a "
        "moment, {charts-closer} and {charts-wider} change the stretch of time, {charts-save} "
        "saves what is shown. The line above "
        "says what follows: idle, slow workers, waiting for input, pace against its own best."
    )

    DEFAULT_CSS = """
    UtilizationPane { layout: vertical; }
    UtilizationPane .charts, UtilizationPane .serving { height: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, Node] = {}
        self._readings: dict[str, dict[str, WorkerRow]] = {}
        self._filter = ""
        self._first_chart = 0
        self._look = ChartView()
        self._found: dict[str, NodeUtilization] = {}
        self._next_charts = 0.0
        self._subject: Subject | None = None

    def compose(self) -> ComposeResult:
        """Lay out rows and charts."""
        context = self.context
        self._curves = CurveBook(context.store.logs)
        self._glyphs = Glyphs.ASCII if context.options.ascii else Glyphs.BLOCK
        self._view = RowView(self, plain=context.options.ascii)
        self._charts = SpanView(self._draw_charts, classes="charts")
        self._serving = SpanView(self._draw_serving, classes="serving")
        yield self._view
        yield self._serving
        yield self._charts

    def on_mount(self) -> None:
        """Show what is known already."""
        self._subject = self.context.subject
        self._curves.sync()
        self._curves.remember(self.context.store.remembered.values())
        self._show_rows()

    def on_resize(self) -> None:
        """Divide the room between rows and charts."""
        self._divide()

    def apply(self, changes: ChangeSet) -> None:
        """Read what changed anew."""
        if not self.is_mounted:
            return
        snapshot = self.context.snapshot
        stale = set(changes.nodes)
        if changes.series or changes.runs:
            stale |= {
                name
                for name, node in self._rows.items()
                if node.node_id in changes.series or node.run in changes.runs
            }
        for name in stale:
            self._readings.pop(name, None)
        if changes.nodes or snapshot.nodes.keys() != {node.name for node in self._rows.values()}:
            self._show_rows()
        elif stale or changes.sources or changes.connection:
            self._view.sync()
            self._divide()
        remembered = bool(changes.runs) and self._curves.remember(
            self.context.store.remembered.values()
        )
        if changes.serving or changes.runs:
            self._divide()
            self._serving.sync()
        is_served = bool(changes.serving)
        if (changes.logs and self._curves.sync()) or stale or remembered or is_served:
            self._sync_charts()

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Let values grow stale, and charts go on, where it is time."""
        if self.is_mounted and self.context.clock.monotonic() >= self._next_charts:
            self._readings.clear()
            self._view.sync()
            self._divide()
            self._serving.sync()
            self._sync_charts()

    def selection_changed(self, subject: Subject | None) -> None:
        """Go to the first worker of what was selected."""
        self._subject = subject
        if not self.is_mounted:
            return
        if subject is not None and subject.node and not self._view.has_focus:
            keys = (key for key, node in self._rows.items() if node.name == subject.node)
            self._view.select(next(keys, ""))
        self._sync_charts(at_once=True)

    def filter(self, text: str) -> None:
        """Show only matching rows."""
        self._filter = text
        self._show_rows()

    def perform(self, action_id: str) -> None:
        """Carry out one of this pane's actions."""
        if action_id == "charts-next":
            self._first_chart += 1
        elif action_id == "charts-glyphs":
            order = [Glyphs.BLOCK, Glyphs.BRAILLE, Glyphs.ASCII]
            self._glyphs = order[(order.index(self._glyphs) + 1) % len(order)]
        elif action_id == "charts-save":
            self._save()
        elif action_id == "charts-full":
            self._look.is_full = not self._look.is_full
            self._divide()
        else:
            self._change_look(action_id)
        self._sync_charts(at_once=True)

    def _change_look(self, action_id: str) -> None:
        """Move the cursor, or show another stretch of time, by the first chart."""
        ordered = self._ordered()
        samples = ordered[0].samples if ordered else ()
        if action_id in {"charts-left", "charts-right"}:
            self._look.move(-1 if action_id == "charts-left" else 1, samples)
        elif action_id in {"charts-closer", "charts-wider"}:
            step = 1 if action_id == "charts-closer" else -1
            self._look.zoom(step, samples, self.context.now().timestamp())

    def _save(self) -> None:
        folder = folder_of(self.app)
        now = self.context.now()
        curves = shown_curves(self._ordered(), self._look, now.timestamp())
        if folder is None or not curves:
            words = "There is no curve to save." if folder else "Nothing is saved from here."
            self.app.notify(words, severity="warning", markup=False)
            return
        row = self._row(self._view.selected)
        name = row.node.node_id if row else "run"

        async def save() -> None:
            words, is_saved = await save_curves(folder, name, curves, now)
            severity: SeverityLevel = "information" if is_saved else "error"
            self.app.notify(safe_text(words, 400), severity=severity, markup=False)

        self.run_worker(save(), name="save the curves", exit_on_error=False)

    def empty_reason(self) -> str:
        """Say why there is no row."""
        if self._rows:
            return ""
        if self.context.snapshot.nodes:
            return "No worker matches the filter."
        return (
            source_problem(self.context, NODES)
            or nothing_runs(self.context, self.host.hints)
            or "There is no node now, so nothing is measured."
        )

    def copy_text(self) -> str:
        """Return the selected row in words."""
        row = self._row(self._view.selected)
        if row is None:
            return ""
        now = self.context.now()
        parts = [f"{measure} {cell_of(row, measure, now).text}" for measure in CELLS.values()]
        return f"{safe_text(row.node.node_id)} worker {row.worker}: {', '.join(parts)}"

    def title_note(self) -> str:
        """Say that nothing here is a real accelerator, where that is so."""
        return EMULATED if self._is_emulator() else ""

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Show the charts of the row that the cursor is on now."""
        event.stop()
        self._sync_charts(at_once=True)

    # What the table asks for.

    def keys(self) -> Sequence[str]:
        """Return the keys of all rows."""
        return tuple(self._rows)

    def head(self, width: int) -> list[Spans]:
        """Return what is wrong with the source, and the titles."""
        reason = self.empty_reason()
        if reason:
            return [(Span(line, "muted"),) for line in wrap_words(reason, max(1, width))]
        problem = source_problem(self.context, METRICS)
        rows = [header_of(columns_that_fit(COLUMNS, width))]
        return [(Span(problem, "chart-warn"),), *rows] if problem else rows

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        row = self._row(key)
        if row is None:
            return ()
        columns = columns_that_fit(COLUMNS, width)
        now = self.context.now()
        cells = {title: cell_of(row, measure, now) for title, measure in CELLS.items()}
        cells["WORKER"] = worker_name(row)
        spark = next((column for column in columns if column.title == "LAST 30 MIN"), None)
        if spark is not None:
            plain = self.context.options.ascii
            cells[spark.title] = spark_of(row, spark.width, now, plain=plain)
        return row_of(columns, cells)

    # Reading and drawing.

    def _row(self, key: str) -> WorkerRow | None:
        """Return one worker's readings; only what is asked for is read, and once."""
        node = self._rows.get(key)
        if node is None:
            return None
        if node.name not in self._readings:
            self._readings[node.name] = {row.key: row for row in self._rows_of(node)}
        return self._readings[node.name].get(key)

    def _rows_of(self, node: Node) -> list[WorkerRow]:
        snapshot = self.context.snapshot
        found = read_utilization(
            node,
            self.context.store.series.of(node.node_id),
            snapshot.runs.get(node.run or ""),
            snapshot.sources.get(METRICS, SourceStatus(METRICS)),
            self.context.now(),
            times=snapshot.times.get(node.name),
        )
        self._found[node.name] = found
        return rows_of(node, found.workers)

    def _show_rows(self) -> None:
        nodes = self.context.snapshot.nodes.values()
        self._rows = {
            worker_key(node, worker): node
            for node in sorted(nodes, key=lambda node: (not node.is_billing, node.name))
            for worker in workers_of(node)
            if matches(
                self._filter,
                f"{node.node_id}:{worker} {node.run or ''} {node.state} {node.accelerator_type}",
            )
        }
        self._view.sync()
        self._divide()

    def _divide(self) -> None:
        """Give the charts what the rows leave, but never less than half where they fit at all."""
        width, height = self.size
        served = len(serving_rows(self.context, max(1, width - 2), height))
        if self._serving.styles.height is None or self._serving.styles.height.value != served:
            self._serving.styles.height = served
        rows = len(self._rows) + len(self.head(width - 2)) + served
        room = max(height - rows, height // 2)
        has_charts = self._rows or any(request.samples for request in self._requests())
        wanted = room if has_charts and room >= LEAST_HEIGHT else 0
        if self._look.is_full and has_charts:
            wanted = max(wanted, height - 2)
        current = self._charts.styles.height
        if current is None or current.value != wanted:
            self._charts.styles.height = wanted

    def _sync_charts(self, *, at_once: bool = False) -> None:
        moment = self.context.clock.monotonic()
        if at_once or moment >= self._next_charts:
            self._charts.sync()
            spent = self.context.clock.monotonic() - moment
            self._next_charts = moment + max(CHART_INTERVAL_S, spent * BUSY_SHARE)

    def _ordered(self) -> list[ChartRequest]:
        """Return the charts, the one that is shown first in front."""
        requests = self._requests()
        first = self._first_chart % len(requests) if requests else 0
        return requests[first:] + requests[:first]

    def _draw_charts(self, width: int, height: int) -> list[Spans]:
        ordered = self._ordered()
        if not ordered:
            return []
        line = self._derived() if height > LEAST_HEIGHT else ()
        pen = ChartPen(self.context.now().timestamp(), self._glyphs, self._look)
        inner = draw_charts(ordered, width - 2, height - bool(line), pen)
        head = [cut_spans(line, max(1, width - 2))] if line else []
        return [(Span(" "), *spans) for spans in (*head, *inner)]

    def _draw_serving(self, width: int, _: int) -> list[Spans]:
        rows = serving_rows(self.context, max(1, width - 2), self.size.height)
        return [(Span(" "), *spans) for spans in rows]

    def _derived(self) -> Spans:
        row = self._row(self._view.selected)
        found = self._found.get(row.node.name) if row else None
        if row is None or found is None:
            return ()
        return derived_line(self.context, row.node, found, self._curves)

    def _requests(self) -> list[ChartRequest]:
        row = self._row(self._view.selected)
        run = (row.node.run if row else None) or (self._subject.run if self._subject else None)
        requests = serving_charts(self.context, run) if run else []
        if run and not requests:
            requests = training_charts(self._curves, run)
        requests += worker_charts(row, EMULATED if self._is_emulator() else "") if row else []
        return sorted(requests, key=lambda request: not request.samples)

    def _is_emulator(self) -> bool:
        connection = self.context.snapshot.connection
        return connection is not None and connection.is_emulator
