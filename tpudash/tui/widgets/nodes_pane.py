"""The nodes pane: runs with their nodes, requests without node, nodes without run, and the gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual.message import Message

from tpudash.store.changes import TombstonesDismissed
from tpudash.store.snapshot import NODES
from tpudash.tui.looks import look_of
from tpudash.tui.pane import Pane, PaneId, Subject, SubjectKind
from tpudash.tui.widgets.empty_reason import nothing_listed
from tpudash.tui.widgets.line import Line
from tpudash.tui.widgets.node_cells import (
    AGE_COLUMNS,
    SORTABLE,
    TIMED_COLUMNS,
    Drawing,
    cell_of,
    columns_for,
)
from tpudash.tui.widgets.node_order import filtered, ordered
from tpudash.tui.widgets.node_rows import (
    Group,
    RowFacts,
    build_groups,
    node_key,
    projects_of,
    request_key,
    run_key,
    tombstone_key,
)
from tpudash.tui.widgets.node_table import Cell, NodeTable
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from datetime import datetime

    from rich.style import Style
    from textual import events
    from textual.app import ComposeResult
    from textual.geometry import Size

    from tpudash.store.changes import ChangeSet
    from tpudash.store.snapshot import Snapshot

_FRAME_ROWS = 2
"""Title and heading."""
_WIDE = 120
_HIGH = 12
"""A narrow terminal of so many rows has a second one for the note, which says what to do next."""


class NodesPane(Pane):
    """What runs where, what is wrong, and what it costs an hour."""

    pane_id = PaneId.NODES
    title = "Nodes"
    help_text = (
        "Every run with its nodes below it, nodes that belong to no run, queued requests without "
        "a node, and nodes and requests that vanished (GONE) until {dismiss} "
        "dismisses them. AGE is the time in the state, and of a node that was there "
        "before anybody looked, since its creation. STEP is the newest step "
        "of the target, HEARD how long ago the agent wrote, RISK the steps since the last "
        "checkpoint, $/H and COST an estimate: chips x dated price x time seen READY. "
        "? is an amount that nobody knows, ≥ a sum of which a part is unknown."
    )
    DEFAULT_CSS = """
    NodesPane {
        layout: vertical;
        & > Line { padding: 0 1; text-wrap: wrap; }
        & > #nodes-empty { height: 1fr; color: $foreground 70%; display: none; }
        & > #nodes-note { color: $foreground 80%; }
    }
    """

    @dataclass
    class SubjectChanged(Message):
        """Another row was selected."""

        subject: Subject | None

    @dataclass
    class RowsChanged(Message):
        """The pane has another number of rows, and may want another height."""

        rows: int

    @dataclass
    class DetailsWanted(Message):
        """The user wants to see everything about a subject."""

        subject: Subject

    @dataclass
    class ShellWanted(Message):
        """The user wants a shell on a node."""

        subject: Subject

    def __init__(self) -> None:
        super().__init__(id=f"pane-{self.pane_id}")
        self._groups: list[Group] = []
        self._facts: dict[str, RowFacts] = {}
        self._filter = ""
        self._sort = SORTABLE[0]
        self._marked: frozenset[str] = frozenset()
        self._drawing: Drawing | None = None
        self._rows_told = -1
        self._has_projects = False
        self._minute: datetime | None = None

    def compose(self) -> ComposeResult:
        """Lay out the table, the reason why it is empty, and the note of the selected row."""
        yield NodeTable(self._cell, self._style, plain=self.context.options.ascii, id="nodes-table")
        yield Line(id="nodes-empty")
        yield Line(id="nodes-note")

    @property
    def table(self) -> NodeTable:
        """The table."""
        return self.query_one(NodeTable)

    @property
    def wanted_height(self) -> int:
        """Rows that the pane would like to have."""
        return len(self.table.row_keys) + _FRAME_ROWS + _note_rows(self.app.size)

    @property
    def selected(self) -> RowFacts | None:
        """The facts of the row under the cursor."""
        return self._facts.get(self.table.cursor_key or "")

    @property
    def marked_subjects(self) -> tuple[Subject, ...]:
        """The subjects of all marked rows that are still there, in their order."""
        return tuple(self._facts[key].subject for key in self.table.row_keys if key in self._marked)

    def on_mount(self) -> None:
        """Draw what is known already."""
        self._rebuild()

    def notify_style_update(self) -> None:
        """Take on another theme."""
        super().notify_style_update()
        if self.is_mounted:
            self._show_note()

    def on_resize(self, event: events.Resize) -> None:
        """Show the columns that fit."""
        self.query_one("#nodes-note").styles.height = _note_rows(self.app.size)
        self._fit_columns(event.size.width)

    def apply(self, changes: ChangeSet) -> None:
        """Bring rows up to date; those that did not change are not looked at."""
        if not (changes.nodes or changes.requests or changes.runs or changes.connection):
            if NODES in changes.sources:
                self._show_empty()
            return
        self._rebuild()
        touched = {
            *(node_key(name) for name in changes.nodes),
            *(tombstone_key(name) for name in changes.nodes),
            *(request_key(name) for name in changes.requests),
            *(tombstone_key(name) for name in changes.requests),
            *(run_key(name) for name in changes.runs),
        }
        touched |= {
            run_key(facts.subject.run)
            for key in touched
            if (facts := self._facts.get(key)) and facts.subject.run
        }
        touched |= {key for key, facts in self._facts.items() if facts.is_child}
        self.table.apply(touched)
        self._show_note()

    def tick(self, now: datetime) -> None:
        """Move ages and dollars on."""
        if self._drawing is not None:
            minute, book = now.replace(second=0, microsecond=0), self.context.prices
            columns: tuple[str, ...] = AGE_COLUMNS if minute == self._minute else TIMED_COLUMNS
            columns = columns if book is self._drawing.book else (*TIMED_COLUMNS, "rate")
            self._minute = minute
            self._drawing = replace(self._drawing, now=now, book=book)
            self.table.apply_visible(columns)

    def filter(self, text: str) -> None:
        """Show only rows that match."""
        self._filter = text.strip()
        self._arrange()

    def empty_reason(self) -> str:
        """Say why there is no row."""
        if self.table.row_keys:
            return ""
        if self._groups:
            back = self.host.hints.fill("Press {filter} and then escape to show all rows.")
            return f"Nothing matches {self._filter!r}. {back}"
        return nothing_listed(self.context, self.host.hints)

    def copy_text(self) -> str:
        """Return the selected row."""
        key = self.table.cursor_key
        return "" if key is None else self.table.text_of(key)

    def title_note(self) -> str:
        """Return the count of rows, the filter and the order."""
        parts = []
        if self._filter:
            parts.append(f"/{safe_text(self._filter, 30)}")
        if self._sort != SORTABLE[0]:
            parts.append(f"by {self._sort}")
        if self._marked:
            parts.append(f"{len(self._marked)} marked")
        return " ".join(parts)

    def perform(self, action_id: str) -> None:
        """Carry out an action of this pane."""
        match action_id:
            case "details":
                if self.selected is not None:
                    self.post_message(self.DetailsWanted(self.selected.subject))
            case "shell":
                if self.selected is not None:
                    self.post_message(self.ShellWanted(self.selected.subject))
            case "mark":
                self._toggle_mark()
            case "dismiss":
                self._dismiss()

    def sort_by(self, column: str | None = None) -> str:
        """Sort by a column, or by the next one; returns its name."""
        if column is None:
            column = SORTABLE[(SORTABLE.index(self._sort) + 1) % len(SORTABLE)]
        if column in SORTABLE:
            self._sort = column
            self._fit_columns(self.size.width)
            self._arrange()
            self.post_message(self.RowsChanged(len(self.table.row_keys)))
        return self._sort

    def _rebuild(self) -> None:
        self._groups = build_groups(
            self.context.snapshot, self.host.hints, acts=not self.context.options.is_watch
        )
        self._facts = {
            facts.key: facts for group in self._groups for facts in (group.head, *group.children)
        }
        self._marked &= self._facts.keys()
        has_projects = len(projects_of(self.context.snapshot)) > 1
        if has_projects != self._has_projects:
            self._has_projects = has_projects
            self._fit_columns(self.size.width)
        self._arrange()

    def _arrange(self) -> None:
        now, book = self.context.now(), self.context.prices
        self._drawing = Drawing(
            now,
            book,
            self.host.mark_of,
            plain=self.context.options.ascii,
            shows_health=any(column.key == "health" for column in self.table.columns),
            marked=self._marked,
            hides_accounts=self.context.options.is_watch,
        )
        rows = ordered(filtered(self._groups, self._filter), self._sort, book, now)
        self.table.set_rows([facts.key for facts in rows])
        self._show_empty()
        self._show_note()
        if len(rows) != self._rows_told:
            self._rows_told = len(rows)
            self.post_message(self.RowsChanged(len(rows)))

    def _fit_columns(self, width: int) -> None:
        if width < 1:
            return
        arrow = "v" if self.context.options.ascii else "▾"
        total = self.app.size.width
        columns = columns_for(
            width - 1,
            total,
            arrow=arrow,
            sorted_by=self._sort,
            has_projects=self._has_projects,
        )
        self.table.set_columns(columns)
        if self._drawing is not None:
            shows_health = any(column.key == "health" for column in self.table.columns)
            self._drawing = replace(self._drawing, shows_health=shows_health)

    def _cell(self, key: str, column: str) -> Cell:
        facts = self._facts.get(key)
        if facts is None or self._drawing is None:
            return Cell()
        return cell_of(facts, column, self._drawing)

    def _style(self, cell: Cell) -> Style:
        return self.host.style_of(cell.variable, bold=cell.bold, dim=cell.dim)

    def _show_empty(self) -> None:
        reason = self.empty_reason()
        line = self.query_one("#nodes-empty", Line)
        line.show(Text(safe_text(reason)))
        line.display = bool(reason)
        self.table.styles.height = 1 if reason else "1fr"

    def _show_note(self) -> None:
        facts = self.selected
        text = Text()
        if facts is not None:
            text.append(safe_text(facts.name, 60), "bold")
            look = look_of(facts.state)
            state = f"  {self.host.mark_of(look)} {safe_text(facts.state, 60)}"
            text.append(state, self.host.style_of(look.variable))
            if facts.note:
                text.append(f"  {safe_text(facts.note, 400)}")
        self.query_one("#nodes-note", Line).show(text)

    def _toggle_mark(self) -> None:
        key = self.table.cursor_key
        if key is None or self._drawing is None:
            return
        self._marked ^= {key}
        self._drawing = replace(self._drawing, marked=self._marked)
        self.table.apply([key], ["name"])
        self.table.action_move(1)
        self.post_message(self.RowsChanged(self._rows_told))

    def _dismiss(self) -> None:
        facts = self.selected
        chosen = facts.subject if facts is not None else None
        names = _dismissed(chosen, self.context.store.snapshot)
        if names:
            self.context.store.apply(TombstonesDismissed(names))

    def on_node_table_row_highlighted(self, event: NodeTable.RowHighlighted) -> None:
        """Tell the app which thing is selected."""
        event.stop()
        self._show_note()
        facts = self._facts.get(event.row_key or "")
        self.post_message(self.SubjectChanged(facts.subject if facts else None))

    def on_node_table_row_chosen(self, event: NodeTable.RowChosen) -> None:
        """Show the details of the row that was clicked twice."""
        event.stop()
        self.perform("details")

    def on_node_table_header_clicked(self, event: NodeTable.HeaderClicked) -> None:
        """Sort by the column that was clicked."""
        event.stop()
        self.sort_by(event.column_key)


def _note_rows(screen: Size) -> int:
    return 2 if screen.width < _WIDE and screen.height >= _HIGH else 1


def _dismissed(chosen: Subject | None, snapshot: Snapshot) -> frozenset[str]:
    """Return the tombstones that go with a chosen one; all of them where none is chosen."""
    requests = snapshot.request_tombstones
    if chosen is None or chosen.kind is not SubjectKind.TOMBSTONE:
        return frozenset((*snapshot.tombstones, *requests))
    # The request that asked for a vanished node has no row of its own and goes with it.
    asked = (name for name, one in requests.items() if chosen.name in one.request.node_names)
    return frozenset((chosen.name, *asked))
