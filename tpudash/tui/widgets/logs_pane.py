"""The logs pane: the log view, what it is limited to, and one line that says how it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text

from tpudash.store.snapshot import LOGS
from tpudash.tui.format import age
from tpudash.tui.pane import Pane, PaneId, Subject, SubjectKind
from tpudash.tui.text import safe_lines, safe_text
from tpudash.tui.widgets.empty_reason import nothing_runs, source_problem
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.log_view import FOLLOW_INTERVAL_S, LogView

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet
    from tpudash.tui.widgets.log_view_filter import LogFilter
    from tpudash.tui.widgets.log_view_text import LogRow


class LogsPane(Pane):
    """What the nodes wrote: of the selected run or node, or of all."""

    pane_id: ClassVar[PaneId] = PaneId.LOGS
    title: ClassVar[str] = "Logs"
    help_text: ClassVar[str] = (
        "Lines of the selected run or node, newest at the bottom, in order of time (UTC). Scroll "
        "up and the view stands still until f or end; it says how many lines it is behind. "
        'The filter takes words, !word, "a phrase", /regular expression/ and run: node: worker: '
        "severity: event: stream: attempt: with a value; severity:warning means at least that. "
        "Before a line of the selected run stand its attempt and worker, else node and worker. "
        "D N W E C mark severities; · is a step, ✓ a checkpoint, ↻ a start, restore or preemption."
    )

    DEFAULT_CSS = "LogsPane { layout: vertical; }"

    def __init__(self, *, follow_interval_s: float = FOLLOW_INTERVAL_S) -> None:
        super().__init__()
        self._follow_interval_s = follow_interval_s
        self._all = False
        self._found: LogFilter | None = None
        self._scope_name = ""
        self._scope_key: tuple[str, frozenset[str]] | None = None
        self._subject: Subject | None = None

    def compose(self) -> ComposeResult:
        """Lay out the view and its line."""
        context = self.context
        self._view = LogView(
            context.store.logs,
            context.now,
            plain=context.options.ascii,
            follow_interval_s=self._follow_interval_s,
        )
        self._line = Line()
        yield self._view
        yield self._line

    def on_mount(self) -> None:
        """Show what is known already."""
        self._subject = self.context.subject
        self._show_scope()
        self._view.sync()
        self._tell()

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
            self._view.sync()
        if changes:
            self._tell()

    def selection_changed(self, subject: Subject | None) -> None:
        """Show the lines of what was selected."""
        self._subject = subject
        if self.is_mounted:
            self._show_scope()
            self._tell()

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Bring ages up to date."""
        self._view.tick()
        self._tell()

    def filter(self, text: str) -> None:
        """Show only matching lines."""
        self._found = self._view.show_matching(text)
        self._tell()

    def perform(self, action_id: str) -> None:
        """Carry out one of this pane's actions."""
        view = self._view
        acts: dict[str, Callable[[], object]] = {
            "logs-follow": view.toggle_follow,
            "logs-wrap": view.toggle_wrap,
            "logs-time": view.toggle_since,
            "logs-scope": self._toggle_scope,
            "logs-next-error": lambda: self._jump(view.jump_to_error, 1, "error"),
            "logs-previous-error": lambda: self._jump(view.jump_to_error, -1, "error"),
            "logs-next-event": lambda: self._jump(view.jump_to_landmark, 1, "event"),
            "logs-previous-event": lambda: self._jump(view.jump_to_landmark, -1, "event"),
        }
        if action_id in acts:
            acts[action_id]()
            self._tell()

    def empty_reason(self) -> str:
        """Say why no line is shown."""
        if self._view.lines.shown:
            return ""
        if self._view.lines.is_searching:
            return "Searching ..."
        if self._view.lines.total:
            filtered = " that match the filter" if self._filter_text() else ""
            scope = f" of {self._scope_name}" if self._scope_name else ""
            key = " Press a for all runs." if self._scope_name else ""
            total = self._view.lines.total
            return f"No lines{scope}{filtered}, among {total:,} lines.{key}"
        problem = source_problem(self.context, LOGS) or nothing_runs(self.context)
        if problem:
            return problem
        return "No lines yet. They appear once a node is READY and its agent has started."

    def copy_text(self) -> str:
        """Return the marked line in full, or the visible lines."""
        marked = self._view.marked
        if marked is not None:
            return "\n".join(safe_lines(marked.entry.text or marked.text, limit=100_000))
        return "\n".join(_as_copied(row) for row in self._view.visible_rows())

    def title_note(self) -> str:
        """Say how far behind a standing view is."""
        if not self.is_mounted:
            return ""
        return "" if self._view.following else f"standing, {self._view.behind:,} behind"

    def on_log_view_changed(self, event: LogView.Changed) -> None:
        """Tell how the view stands after it moved."""
        event.stop()
        self._tell()

    def _toggle_scope(self) -> None:
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
        run = subject.run if subject and subject.kind is SubjectKind.RUN else None

        def belongs(row: LogRow) -> bool:
            return row.entry.node_id in nodes or (run is not None and row.entry.run == run)

        is_one_run = subject is not None and subject.run is not None
        self._view.show_scope(belongs if name else None, is_one_run=is_one_run)

    def _scope_of(self, subject: Subject | None) -> tuple[str, frozenset[str]]:
        """Return the name of what is shown, and the ids of its nodes; no name means all."""
        if subject is None:
            return "", frozenset()
        if subject.kind is SubjectKind.RUN and subject.run:
            nodes = {node.node_id for node in self.context.snapshot.nodes_of(subject.run)}
            return safe_text(subject.run, 40), frozenset(nodes)
        node_id = subject.node_id
        return (safe_text(node_id, 60), frozenset((node_id,))) if node_id else ("", frozenset())

    def _jump(self, jump: Callable[[int], bool], step: int, what: str) -> None:
        if not jump(step):
            where = "newer" if step > 0 else "older"
            self.app.notify(f"No {where} {what} among these lines.", timeout=3)

    def _filter_text(self) -> str:
        return self._found.text if self._found else ""

    def _tell(self) -> None:
        if not self._view.lines.shown:
            reason = self.empty_reason()
            if reason != self._view.empty_text:
                self._view.empty_text = reason
                self._view.repaint()
        self._line.show(self._status())

    def _status(self) -> Text:
        view, style_of = self._view, self.host.style_of
        text = Text(" ")
        if view.following:
            text.append("following", style_of("state-ready"))
        else:
            text.append(
                f"standing still, {view.behind:,} newer below, f follows",
                style_of("warning", bold=True),
            )
        muted = style_of("muted")
        parts = [f"{self._scope_name or 'all runs'}: {len(view.lines.shown):,} lines"]
        if view.lines.is_searching:
            parts.append("searching")
        if self._filter_text():
            parts.append(f"filter {safe_text(self._filter_text(), 40)}")
        if view.side:
            parts.append(f"from column {view.side}")
        parts += self._about_source()
        for part in parts:
            text.append(f"  {part}", muted)
        if self._found and self._found.problem:
            text.append(f"  {safe_text(self._found.problem, 80)}", style_of("error"))
        return text

    def _about_source(self) -> list[str]:
        ring = self.context.store.logs
        parts = []
        newest = ring.newest(1)
        if newest:
            parts.append(f"last {age(newest[0].timestamp, self.context.now(), step=5)} ago")
        if ring.suppressed:
            parts.append(f"{ring.suppressed:,} left out by the source")
        problem = source_problem(self.context, LOGS) if newest else ""
        return [*parts, problem] if problem else parts


def _as_copied(row: LogRow) -> str:
    node, worker = row.source
    source = safe_text(f"{node}:{worker}" if worker else node, 80)
    return f"{row.entry.timestamp:%Y-%m-%dT%H:%M:%SZ} {source} {row.text}"
