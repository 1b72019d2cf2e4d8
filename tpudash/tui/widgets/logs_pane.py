"""The logs pane: the log view, what it is limited to, and one line that says how it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from tpudash.domain.log import Severity
from tpudash.store.snapshot import LOGS
from tpudash.tui.pane import Pane, PaneId, Subject, SubjectKind
from tpudash.tui.widgets.empty_reason import nothing_runs, source_problem
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.log_beats import draw_beats
from tpudash.tui.widgets.log_causes import Cause, CauseBook
from tpudash.tui.widgets.log_input import LogInput, Typing
from tpudash.tui.widgets.log_saving import copied
from tpudash.tui.widgets.log_view import FOLLOW_INTERVAL_S, LogView
from tpudash.tui.widgets.logs_pane_acts import LogsActs
from tpudash.tui.widgets.logs_status import LogStatus, about_ring
from tpudash.tui.widgets.span_view import Span, SpanView
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.store.log_lines import LogLinesSource, LogSource
    from tpudash.store.log_pulses import Pulse
    from tpudash.tui.widgets.span_view import Spans

LEAST_SEVERITIES: Final = (None, Severity.WARNING, Severity.ERROR)
JUDGE_AGAIN_S: Final = 0.1


class LogsPane(Pane):
    """What the nodes wrote: of the selected run or node, or of all.

    Args:
        source: The log to show; None for the store's own.
        about: Returns what is said of that source in the line below.
    """

    pane_id: ClassVar[PaneId] = PaneId.LOGS
    title: ClassVar[str] = "Logs"
    help_text: ClassVar[str] = (
        "Lines of the selected run or node, newest at the bottom, in order of time (UTC). Scroll "
        "up and the view stands still until {logs-follow} or end; it says how many lines it is "
        "behind. {logs-search} searches and {logs-next-match} {logs-previous-match} go from match "
        "to match; {logs-filter} shows matching lines only, {logs-more-context} and "
        '{logs-less-context} lines beside them. Both take words, !word, "a phrase", '
        "/regular expression/ and run: node: worker: severity: event: stream: attempt: with "
        "a value; severity:warning means at least that. Tracebacks, dumps of XLA and what several "
        "workers say alike (x32) are folded; "
        "{logs-fold} opens them. Before a line of the selected run stand its attempt and worker, "
        "else node and worker. D N W E C mark severities; · is a step, ✓ a "
        "checkpoint, ↻ a start, restore or preemption, ◆ a bookmark. [HBM_OOM] names the cause "
        "that a line tells of; {logs-cause} goes to the earliest one."
    )

    DEFAULT_CSS = """
    LogsPane { layout: vertical; }
    LogsPane .beats { display: none; }
    """

    def __init__(
        self,
        *,
        follow_interval_s: float = FOLLOW_INTERVAL_S,
        source: LogLinesSource | None = None,
        about: Callable[[], list[str]] | None = None,
    ) -> None:
        super().__init__()
        self._follow_interval_s = follow_interval_s
        self._given = source
        self._about = about
        self._all = False
        self._typed = ""
        self._least: Severity | None = None
        self._only = ""
        self._scope_name = ""
        self._scope_key: tuple[str, frozenset[str]] | None = None
        self._subject: Subject | None = None
        self._is_judging = False
        self._acts = LogsActs(self)

    def compose(self) -> ComposeResult:
        """Lay out the view and its lines."""
        context = self.context
        source = self._given if self._given is not None else context.store.logs
        self._view = LogView(
            source,
            context.now,
            plain=context.options.ascii,
            follow_interval_s=self._follow_interval_s,
        )
        self.causes = CauseBook(source)
        self._view.tags = self.causes.tags
        self._beats = SpanView(self._draw_beats, classes="beats")
        self._input = LogInput()
        self._line = Line()
        yield self._view
        yield self._beats
        yield self._input
        yield self._line

    def on_mount(self) -> None:
        """Show what is known already."""
        self._subject = self.context.subject
        self._show_scope()
        self.sync()

    @property
    def view(self) -> LogView:
        """The view itself."""
        return self._view

    def apply(self, changes: ChangeSet) -> None:
        """Take in new lines."""
        if not self.is_mounted:
            return
        if changes.runs or changes.nodes:
            self._show_scope()
        if changes.logs:
            self.sync()
        elif changes:
            self._tell()

    def sync(self) -> None:
        """Take in what the log got."""
        self._view.sync()
        self._judge()
        self._tell()

    def _judge(self) -> None:
        """Name causes; what can't be done now without holding up keys is done a little later."""
        self._is_judging = False
        if self.causes.sync():
            self._view.repaint()
        if self.causes.is_busy and not self._is_judging:
            self._is_judging = True
            self.set_timer(JUDGE_AGAIN_S, self._judge)

    def selection_changed(self, subject: Subject | None) -> None:
        """Show the lines of what was selected."""
        self._subject = subject
        if self.is_mounted:
            self._show_scope()
            self._tell()

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Bring ages up to date."""
        self._view.tick()
        if self._beats.display:
            self._beats.sync()
        self._tell()

    def filter(self, text: str) -> None:
        """Show only matching lines."""
        self._typed = text.strip()
        self._apply_filter()

    def _apply_filter(self) -> None:
        self._view.choices.show_matching(self._filter_text())
        self._tell()

    def _filter_text(self) -> str:
        least = f"severity:{self._least.lower()}" if self._least else ""
        return " ".join(part for part in (self._typed, least, self._only) if part)

    def perform(self, action_id: str) -> None:
        """Carry out one of this pane's actions."""
        act = self._acts.table().get(action_id.removeprefix("logs-"))
        if act is not None:
            act()
            self._tell()

    def on_log_input_typed(self, event: LogInput.Typed) -> None:
        """Search or filter as it is typed."""
        event.stop()
        if event.what is Typing.FILTER:
            self.filter(event.text)
        else:
            self._view.jumps.begin_search(event.text)
            if event.is_done:
                self._acts.search_from_newest()
        if event.is_done or event.is_given_up:
            self._view.focus()
        self._tell()

    def begin_typing(self, what: Typing) -> None:
        """Open the line in which a search or a filter is typed."""
        self._input.begin(what, self._typed if what is Typing.FILTER else self._view.search.text)

    def next_severity(self) -> None:
        """Show all lines, then warnings and above, then errors only."""
        at = LEAST_SEVERITIES.index(self._least)
        self._least = LEAST_SEVERITIES[(at + 1) % len(LEAST_SEVERITIES)]
        self._apply_filter()

    def show_only(self, words: str) -> None:
        """Show only what a filter beside the typed one lets through."""
        self._only = words
        self._apply_filter()

    def toggle_beats(self) -> None:
        """Show when each worker was heard last, or the lines again."""
        self._beats.display = not self._beats.display
        self._view.display = not self._beats.display
        if self._beats.display:
            self.call_after_refresh(self._beats.sync)
        else:
            self._view.focus()

    def _draw_beats(self, width: int, height: int) -> Sequence[Spans]:
        name, nodes = self._scope_of(None if self._all else self._subject)
        run = self._run

        def belongs(pulse: Pulse) -> bool:
            return not name or pulse.node_id in nodes or (run is not None and pulse.run == run)

        source = self.context.store.logs if self._given is None else self._given
        pulses = getattr(source, "pulses", None)
        if pulses is None:
            return [(Span("A file tells nobody's heartbeat; only live logs do.", "muted"),)]
        return draw_beats(pulses, self.context.now(), (width, height), belongs=belongs)

    @property
    def cause(self) -> Cause | None:
        """The root of the newest failure among what is shown, or None."""
        roots = self.causes.roots()
        name, nodes = self._scope_of(None if self._all else self._subject)
        if name:
            roots = [one for one in roots if one.node_id in nodes or one.group[0] == self._run]
        return roots[0] if roots else None

    @property
    def scope_name(self) -> str:
        """The name of what is shown, "" for everything."""
        return self._scope_name

    def copy_text(self) -> str:
        """Return the marked line in full, or the visible lines."""
        marked = self._view.marked
        if marked is not None:
            return marked.line.text
        return "\n".join(map(copied, self._view.visible_rows()))

    def empty_reason(self) -> str:
        """Say why no line is shown."""
        lines = self._view.lines
        if lines.top is not None:
            return ""
        if lines.is_searching:
            return "Searching ..."
        if lines.total:
            filtered = " that match the filter" if self._filter_text() else ""
            scope = f" of {self._scope_name}" if self._scope_name else ""
            other = " Press {logs-filter} for another filter." if filtered else ""
            wider = " Press {logs-scope} for all runs." if self._scope_name else ""
            keys = self.host.hints.fill(other + wider)
            return f"No lines{scope}{filtered}, among {lines.total:,} lines.{keys}"
        if self._given is not None:
            return "There is nothing in it yet."
        problem = source_problem(self.context, LOGS) or nothing_runs(self.context, self.host.hints)
        if problem:
            return problem
        return "No lines yet. They appear once a node is READY and its agent has started."

    def title_note(self) -> str:
        """Say how far behind a standing view is."""
        if not self.is_mounted:
            return ""
        return "" if self._view.following else f"standing, {self._view.behind:,} behind"

    def on_log_view_changed(self, event: LogView.Changed) -> None:
        """Tell how the view stands after it moved."""
        event.stop()
        self._tell()

    @property
    def _run(self) -> str | None:
        subject = None if self._all else self._subject
        return subject.run if subject and subject.kind is SubjectKind.RUN else None

    def toggle_scope(self) -> None:
        """Show the lines of everything, or of what is selected."""
        self._all = not self._all
        self._show_scope()

    def _show_scope(self) -> None:
        subject = None if self._all else self._subject
        name, nodes = self._scope_of(subject)
        key = (name, nodes)
        if key == self._scope_key:
            return
        self._scope_key = key
        self._scope_name = name
        run = self._run

        def belongs(source: LogSource) -> bool:
            return source.node_id in nodes or (run is not None and source.run == run)

        is_one_run = subject is not None and subject.run is not None
        self._view.choices.show_scope(belongs if name else None, is_one_run=is_one_run)

    def _scope_of(self, subject: Subject | None) -> tuple[str, frozenset[str]]:
        """Return the name of what is shown, and the ids of its nodes; no name means all."""
        if subject is None:
            return "", frozenset()
        if subject.kind is SubjectKind.RUN and subject.run:
            nodes = {node.node_id for node in self.context.snapshot.nodes_of(subject.run)}
            return safe_text(subject.run, 40), frozenset(nodes)
        node_id = subject.node_id
        return (safe_text(node_id, 60), frozenset((node_id,))) if node_id else ("", frozenset())

    def _tell(self) -> None:
        if self._view.lines.top is None:
            reason = self.empty_reason()
            if reason != self._view.empty_text:
                self._view.empty_text = reason
                self._view.repaint()
        status = LogStatus(
            self._scope_name or ("all runs" if self._given is None else "all"),
            self._filter_text(),
            self.cause,
            tuple(self._about_source()),
        )
        self._line.show(status.text(self._view, self.host))

    def _about_source(self) -> list[str]:
        if self._about is not None:
            return self._about()
        ring = self.context.store.logs
        parts = about_ring(ring, self.context.now())
        problem = source_problem(self.context, LOGS) if len(ring) else ""
        return [*parts, problem] if problem else parts
