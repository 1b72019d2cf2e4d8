"""The checklist pane: what was checked, the evidence, and what to do about it; worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from tpudash.domain.finding import Finding, Verdict
from tpudash.store.snapshot import CHECKLIST
from tpudash.tui.actions import find_action
from tpudash.tui.pane import Pane, PaneId, Subject
from tpudash.tui.widgets.empty_reason import source_problem
from tpudash.tui.widgets.row_view import Column, RowView, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, SpanView, wrap_words
from tpudash.tui.widgets.word_filter import matches
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from textual.app import ComposeResult

    from tpudash.store.changes import ChangeSet


class VerdictLook(NamedTuple):
    """How one verdict looks: word, glyph, its ASCII stand-in, and theme variable."""

    word: str
    glyph: str
    plain_glyph: str
    variable: str


VERDICT_LOOKS: Final[Mapping[Verdict, VerdictLook]] = {
    Verdict.FAIL: VerdictLook("fail", "✗", "x", "chart-bad"),
    Verdict.WARN: VerdictLook("warn", "▲", "!", "chart-warn"),
    Verdict.UNKNOWN: VerdictLook("unknown", "?", "?", "state-unknown"),
    Verdict.PASS: VerdictLook("pass", "✓", "+", "chart-ok"),
    Verdict.NOT_APPLICABLE: VerdictLook("n/a", "·", "-", "muted"),
}
"""Worst first, which is the order of the rows."""
_ORDER: Final = {verdict: place for place, verdict in enumerate(VERDICT_LOOKS)}

COLUMNS: Final = (
    Column("VERDICT", 9),
    Column("CHECK", 24, grow=1),
    Column("EVIDENCE", 16, rank=3, grow=2),
    Column("ABOUT", 12, rank=1),
    Column("AGE", 6, right=True, rank=2),
)
EVIDENCE_LIMIT: Final = 2_000
LEAST_ROWS_FOR_DETAIL: Final = 7
MOST_DETAIL_ROWS: Final = 10


class ChecklistPane(Pane):
    """The troubleshooting checklist."""

    pane_id: ClassVar[PaneId] = PaneId.CHECKLIST
    title: ClassVar[str] = "Checklist"
    help_text: ClassVar[str] = (
        "Checks of the project, its nodes and its runs, worst first: ✗ fail, ▲ warn, ? unknown "
        "(it could not be found out, which is never a pass), ✓ pass, · n/a. Move through the rows "
        "to read the whole evidence, why it matters, and which key or command helps."
    )

    DEFAULT_CSS = """
    ChecklistPane { layout: vertical; }
    ChecklistPane .detail { height: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._findings: dict[str, Finding] = {}
        self._filter = ""

    def compose(self) -> ComposeResult:
        """Lay out the rows and the detail of the selected one."""
        self._view = RowView(self, plain=self.context.options.ascii)
        self._detail = SpanView(self._draw_detail, classes="detail")
        yield self._view
        yield self._detail

    def on_mount(self) -> None:
        """Show what is known already."""
        self._sync()

    def on_resize(self) -> None:
        """Give the detail the room it needs, if there is any."""
        self._fit_detail()

    def apply(self, changes: ChangeSet) -> None:
        """Take in the checklist as it stands now."""
        if self.is_mounted and (changes.findings or CHECKLIST in changes.sources):
            self._sync()

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Bring ages up to date."""
        self._view.sync()

    def selection_changed(self, subject: Subject | None) -> None:
        """Go to the worst row about what was selected, unless this pane is being read."""
        if subject is None or not self.is_mounted or self._view.has_focus_within:
            return
        about = {subject.short_name, subject.node_id, subject.run}
        for key, finding in self._findings.items():
            if finding.subject in about and finding.verdict is not Verdict.PASS:
                self._view.select(key)
                return

    def show_finding(self, check_id: str, subject: str) -> bool:
        """Go to one row; False if there is none."""
        key = f"{check_id}/{subject}"
        if key not in self._findings:
            return False
        self._view.select(key)
        self._fit_detail()
        return True

    def filter(self, text: str) -> None:
        """Show only matching rows."""
        self._filter = text
        self._sync()

    def empty_reason(self) -> str:
        """Say why there is no row."""
        if self._findings:
            return ""
        if self.context.snapshot.findings:
            return "No check matches the filter."
        problem = source_problem(self.context, CHECKLIST)
        return problem or "Nothing was checked yet. The first checks follow the first listing."

    def copy_text(self) -> str:
        """Return everything about the selected row."""
        finding = self._findings.get(self._view.selected)
        if finding is None:
            return ""
        return "\n".join(
            text
            for text in (
                f"{finding.verdict}: {safe_text(finding.title)} ({safe_text(finding.subject)})",
                safe_text(finding.evidence, EVIDENCE_LIMIT),
                safe_text(finding.why, EVIDENCE_LIMIT),
                self._what_to_do(finding),
            )
            if text
        )

    def title_note(self) -> str:
        """Count what is wrong."""
        counts = dict.fromkeys(VERDICT_LOOKS, 0)
        for finding in self.context.snapshot.findings:
            counts[finding.verdict] += 1
        wrong = (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)
        parts = [f"{counts[one]} {VERDICT_LOOKS[one].word}" for one in wrong if counts[one]]
        if parts:
            return " ".join(parts)
        return "all pass" if counts[Verdict.PASS] else ""

    def on_row_view_moved(self, event: RowView.Moved) -> None:
        """Show the detail of the row that the cursor is on now."""
        event.stop()
        self._fit_detail()

    # What the table asks for.

    def keys(self) -> Sequence[str]:
        """Return the keys of all rows."""
        return tuple(self._findings)

    def head(self, width: int) -> list[Spans]:
        """Return the titles, or the reason why there is no row."""
        reason = self.empty_reason()
        if reason:
            return [(Span(line, "muted"),) for line in wrap_words(reason, max(1, width))]
        return [header_of(columns_that_fit(COLUMNS, width))]

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        finding = self._findings[key]
        look = VERDICT_LOOKS[finding.verdict]
        mark = look.plain_glyph if self.context.options.ascii else look.glyph
        is_wrong = finding.verdict in {Verdict.FAIL, Verdict.WARN}
        when = age(finding.as_of, self.context.now(), step=60) if finding.as_of else ""
        cells = {
            "VERDICT": Span(f"{mark} {look.word}", look.variable, bold=is_wrong),
            "CHECK": Span(safe_text(finding.title, 80), "", bold=is_wrong),
            "ABOUT": Span(safe_text(finding.subject, 80), "muted"),
            "EVIDENCE": Span(safe_text(finding.evidence, 400), "" if is_wrong else "muted"),
            "AGE": Span("" if when == "0s" else when, "muted"),
        }
        return row_of(columns_that_fit(COLUMNS, width), cells)

    def _sync(self) -> None:
        found: dict[str, Finding] = {}
        ordered = sorted(
            self.context.snapshot.findings,
            key=lambda finding: _ORDER[finding.verdict],
        )
        for finding in ordered:
            words = f"{finding.verdict} {finding.check_id} {finding.title} {finding.subject}"
            if matches(self._filter, f"{words} {finding.evidence} {finding.advice}"):
                found.setdefault(f"{finding.check_id}/{finding.subject}", finding)
        # A reader who has not moved from the top wants to read what is on top now.
        is_at_top = self._view.selected == next(iter(self._findings), "")
        self._findings = found
        self._view.sync()
        if is_at_top and found:
            self._view.select(next(iter(found)))
        self._fit_detail()

    def _fit_detail(self) -> None:
        """Give the detail as many rows as it has, but never more than the table."""
        width, height = self.size
        rows = 0
        if height >= LEAST_ROWS_FOR_DETAIL:
            wanted = len(self._draw_detail(width, MOST_DETAIL_ROWS))
            rows = min(wanted, height // 2, MOST_DETAIL_ROWS)
        current = self._detail.styles.height
        if current is None or current.value != rows:
            self._detail.styles.height = rows
        self._detail.sync()

    def _draw_detail(self, width: int, height: int) -> list[Spans]:
        finding = self._findings.get(self._view.selected)
        if finding is None or width < 4:
            return []
        look = VERDICT_LOOKS[finding.verdict]
        title = f"{safe_text(finding.title, 200)}: {safe_text(finding.subject, 80)}"
        rows: list[Spans] = [(Span(" "), Span(title, look.variable, bold=True))]
        parts = (
            ("evidence", safe_text(finding.evidence, EVIDENCE_LIMIT)),
            ("do", self._what_to_do(finding)),
            ("why", safe_text(finding.why, EVIDENCE_LIMIT)),
        )
        room = height - len(rows)
        wrapped = {name: wrap_words(text, max(1, width - 11)) for name, text in parts if text}
        kept = len(wrapped.get("do", ())) + ("why" in wrapped)
        for name, lines in wrapped.items():
            # What to do is never shortened in favour of the evidence, nor of the reason.
            shown = lines[: max(1, room - kept)] if name == "evidence" else lines[: max(0, room)]
            room -= len(shown)
            for number, line in enumerate(shown):
                label = f" {name:<8} " if number == 0 else " " * 10
                rows.append((Span(label, "muted"), Span(line, "primary" if name == "do" else "")))
        return rows[:height]

    def _what_to_do(self, finding: Finding) -> str:
        parts = [safe_text(finding.advice, EVIDENCE_LIMIT)]
        action = find_action(finding.action) if finding.action else None
        is_watch = self.context.options.is_watch
        if action is not None and not (is_watch and action.needs_operator):
            key = self.host.hints.key_or(action.id, "")
            parts.append(f"Press {key} ({action.label})." if key else f"Palette: {action.label}.")
        if finding.command:
            parts.append(f"Command: {safe_text(finding.command, EVIDENCE_LIMIT)}")
        return " ".join(part for part in parts if part)
