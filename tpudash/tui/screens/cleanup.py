"""What could be given back, and deleting what is marked of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding

from tpudash.cost.cleanup import CleanupRules, cleanup_candidates, marked
from tpudash.cost.lives import lives_of
from tpudash.store.snapshot import NODES, RUNS, SourceState
from tpudash.tui.looks import look_of
from tpudash.tui.screens.money_page import MoneyPage
from tpudash.tui.screens.plan import PlanDialog
from tpudash.tui.widgets.row_view import Column, columns_that_fit, header_of, row_of
from tpudash.tui.widgets.span_view import Span, Spans, wrap_words
from tpudash.wording.format import age
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from textual.binding import BindingType

    from tpudash.cost.cleanup import Candidate
    from tpudash.domain.operation import OperationsPort
    from tpudash.store.changes import ChangeSet
    from tpudash.tui.pane import HostApp

COLUMNS: Final = (
    Column("MARK", 4),
    Column("NAME", 14, grow=1),
    Column("WHY", 13),
    Column("FOR", 7, right=True, rank=2),
    Column("$/H", 8, right=True),
    Column("CHIPS", 5, right=True),
    Column("STATE", 16, rank=4),
    Column("TYPE", 14, rank=3),
    Column("ZONE", 16, rank=5),
    Column("OWNER", 10, rank=6),
)
KEYS: Final = "space marks  a all ours  enter shows the plan  esc closes"
NOTHING: Final = "Nothing is dead, leaked, idle or over its time."


class CleanupScreen(MoneyPage):
    """Marks what tpudash made; anything else only where the user marks that very row.

    Nothing is deleted from here: the plan is shown first, and wants its word typed.

    Args:
        idle_for: For how long a node must have been of no use to be listed.
    """

    page_title = "Clean up: dead, leaked, idle, over its time"
    page_keys = KEYS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", show=False),
        Binding("a", "mark_ours", show=False),
        Binding("enter", "plan", show=False),
        Binding("q", "close", show=False),
    ]

    def __init__(self, host: HostApp, operations: OperationsPort, idle_for: timedelta) -> None:
        super().__init__(host, id="cleanup-screen")
        self._idle_for = idle_for
        self._operations = operations
        self._rows: dict[str, Candidate] = {}
        self._marked: set[str] = set()
        self._seen: set[str] = set()

    def on_mount(self) -> None:
        """Show what there is."""
        self._view.focus()
        self._work_out()

    @property
    def chosen(self) -> tuple[Candidate, ...]:
        """What is marked."""
        return tuple(one for name, one in self._rows.items() if name in self._marked)

    def apply(self, changes: ChangeSet) -> None:
        """Bring the list up to date."""
        if changes.nodes or changes.runs or changes.requests or changes.sources:
            self._work_out()

    def tick(self, now: datetime) -> None:  # noqa: ARG002
        """Let ages and dollars go on."""
        self._work_out()

    def _work_out(self) -> None:
        context = self.host.context
        snapshot, now = context.store.snapshot, context.now()
        is_known = snapshot.sources[RUNS].state is SourceState.OK
        rules = CleanupRules(idle_for=self._idle_for, runs_known=is_known)
        lives = lives_of(snapshot, context.prices, now)
        found = cleanup_candidates(snapshot, lives, now, rules)
        self._rows = {one.name: one for one in found}
        fresh = [one for one in marked(found) if one.name not in self._seen]
        self._marked |= {one.name for one in fresh}
        self._seen |= self._rows.keys()
        self.redraw()

    def action_mark(self) -> None:
        """Mark or unmark the selected row."""
        one = self._rows.get(self._view.selected)
        if one is None:
            return
        self._marked ^= {one.name}
        if one.name in self._marked and not one.is_ours:
            name = safe_text(one.name.rsplit("/", 1)[-1], 80)
            words = f"tpudash did not make {name}; it is marked since you named it."
            self.host.notify(words, severity="warning", markup=False)
        self._view.sync()
        self._view.action_move(1)

    def action_mark_ours(self) -> None:
        """Mark everything that tpudash made, or nothing at all."""
        ours = {one.name for one in marked(self._rows.values())}
        self._marked = set() if ours <= self._marked else self._marked | ours
        self._view.sync()

    def action_plan(self) -> None:
        """Show what deleting the marked ones would do; nothing is done before it is confirmed."""
        chosen = self.chosen
        if not chosen:
            self.host.notify("Nothing is marked: space marks a row.", markup=False)
            return
        targets = [one.name for one in chosen]
        names = ", ".join(one.name.rsplit("/", 1)[-1] for one in chosen[:3])
        more = f" and {len(chosen) - 3} more" if len(chosen) > 3 else ""
        make_plan = partial(self._operations.plan_delete, targets)
        title = f"Delete {names}{more}"
        self.host.push_screen(PlanDialog(self.host, self._operations, title, make_plan))

    # What the table asks for.

    def keys(self) -> Sequence[str]:
        """Return the names of all rows."""
        return tuple(self._rows)

    def head(self, width: int) -> list[Spans]:
        """Return the sums and the titles, or why there is no row."""
        notes = self._notes()
        if not self._rows:
            notes = [*notes, NOTHING]
        words = [line for note in notes for line in wrap_words(note, width)]
        lines: list[Spans] = [(Span(line, "muted"),) for line in words]
        if not self._rows:
            return lines
        chosen = self.chosen
        rate = sum(one.per_hour_usd or 0.0 for one in chosen)
        is_partial = any(one.per_hour_usd is None for one in chosen)
        chips = sum(one.chips or 0 for one in chosen)
        total = (
            Span(f"{len(chosen)} of {len(self._rows)} marked: ", "muted"),
            Span(f"{self.in_dollars(rate, at_least=is_partial)}/h", "", True),
            Span(f" and {chips} chips of quota given back; checkpoints stay", "muted"),
        )
        return [*lines, total, header_of(columns_that_fit(COLUMNS, width))]

    def _notes(self) -> list[str]:
        """Return what is not known, so that nobody takes a short list for a whole one."""
        snapshot = self.host.context.store.snapshot
        notes = []
        if snapshot.sources[NODES].state is not SourceState.OK:
            notes.append("Nodes can't be listed now: this is what was known before.")
        if snapshot.sources[RUNS].state is not SourceState.OK:
            notes.append("Runs can't be read now, so nothing is called leaked or idle.")
        if snapshot.unreachable:
            zones = ", ".join(sorted(snapshot.unreachable))
            notes.append(f"No answer from {safe_text(zones, 100)}: nothing there is listed.")
        return notes

    def row(self, key: str, width: int) -> Spans:
        """Return one row."""
        one = self._rows[key]
        plain = self.host.context.options.ascii
        mark = ("x" if plain else "✓") if key in self._marked else ""
        since = age(one.since, self.host.context.now(), step=60) if one.since else "-"
        chips = "-" if one.chips is None else str(one.chips)
        state = safe_text(one.state, 40)
        cells = {
            "MARK": Span(f" {mark}", "chart-warn", True),
            "NAME": Span(safe_text(one.name.rsplit("/", 1)[-1], 80), "", True),
            "WHY": Span(str(one.reason), "chart-warn"),
            "FOR": Span(since, "muted"),
            "$/H": Span(self.in_dollars(one.per_hour_usd), "", True),
            "CHIPS": Span(chips),
            "STATE": Span(f"{self.host.mark_of(one.state)} {state}", look_of(one.state).variable),
            "TYPE": Span(safe_text(one.accelerator_type, 40), "muted"),
            "ZONE": Span(safe_text(one.zone, 40), "muted"),
            "OWNER": Span(safe_text(one.owner or "-", 40), "muted"),
        }
        return row_of(columns_that_fit(COLUMNS, width), cells)

    def about_selected(self) -> str:
        """Return the evidence of the selected row."""
        one = self._rows.get(self._view.selected)
        if one is None:
            return ""
        made = "" if one.is_ours else " tpudash did not make it: only space marks it."
        so_far = f", {self.in_dollars(one.accrued_usd)} so far" if one.accrued_usd else ""
        kind = "node" if one.is_node else "queued resource"
        return f"{kind} {one.name.rsplit('/', 1)[-1]} ({one.state}{so_far}): {one.why}.{made}"
