"""The columns of the nodes pane: which fit a width, and what stands in each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.masking import MASK
from tpudash.tui.looks import REPAIRING, Look, look_of
from tpudash.tui.widgets.node_table import GAP, Cell, Column
from tpudash.wording import format as fmt
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tpudash.cost.prices import PriceBook
    from tpudash.tui.widgets.node_rows import RowFacts

SILENT_WARN_S: Final = 90
SILENT_BAD_S: Final = 300
AGE_STEPS: Final = ((60.0, 5), (600.0, 30))
"""Ages below so many seconds move on in steps of so many, and older ones with the minute, all rows
at once, so that a quiet table costs next to nothing on a slow line."""
AGE_COLUMNS: Final = ("age", "heard")
TIMED_COLUMNS: Final = (*AGE_COLUMNS, "accrued")
"""Columns whose text changes with time alone."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What cells are drawn with.

    Attributes:
        mark_of: Returns the glyph of a state.
        plain: ASCII characters only.
        shows_health: Whether the health has a column of its own.
        marked: Row keys that the user marked.
        hides_accounts: Whose a run is must not be seen.
    """

    now: datetime
    book: PriceBook
    mark_of: Callable[[str | Look], str]
    plain: bool = False
    shows_health: bool = True
    marked: frozenset[str] = frozenset()
    hides_accounts: bool = False


@dataclass(frozen=True, slots=True)
class _Kind:
    """A column with its widths: at least `width`, and more where the terminal is wider."""

    key: str
    label: str
    width: int
    right: bool = False
    wider: tuple[tuple[int, int], ...] = ()

    def at(self, total: int) -> Column:
        """Return the column as it is on a terminal of this width."""
        width = max((width for limit, width in self.wider if total >= limit), default=self.width)
        return Column(self.key, self.label, width, self.right)


_KINDS: Final = (
    _Kind("name", "NAME", 15, wider=((110, 20), (160, 26))),
    _Kind("project", "PROJECT", 10, wider=((110, 14), (160, 20))),
    _Kind("state", "STATE", 14, wider=((110, 18), (150, 24))),
    _Kind("health", "HEALTH", 10, wider=((180, 21),)),
    _Kind("age", "AGE", 6, right=True),
    _Kind("type", "TYPE", 8, wider=((100, 12),)),
    _Kind("chips", "CHIPS", 5, right=True),
    _Kind("hosts", "HOSTS", 5, right=True),
    _Kind("workers", "WRK", 4, right=True),
    _Kind("scheduling", "SCHED", 9, wider=((150, 11),)),
    _Kind("zone", "ZONE", 14),
    _Kind("step", "STEP", 10, right=True, wider=((110, 13),)),
    _Kind("examples", "EX/S", 6, right=True),
    _Kind("loss", "LOSS", 6, right=True),
    _Kind("heard", "HEARD", 5, right=True),
    _Kind("risk", "RISK", 4, right=True, wider=((100, 5),)),
    _Kind("rate", "$/H", 7, right=True),
    _Kind("accrued", "COST", 8, right=True),
    _Kind("owner", "OWNER", 8),
)
_PRIORITY: Final = (
    *("name", "state", "project", "step", "age", "rate", "heard", "type", "risk", "accrued"),
    *("workers", "examples", "health", "scheduling", "zone", "chips", "hosts", "loss", "owner"),
)
NOTE_LEAST: Final = 24
SORTABLE: Final = ("name", "state", "age", "type", "step", "rate", "accrued")


def columns_for(
    width: int,
    total: int,
    *,
    arrow: str = "",
    sorted_by: str = "",
    has_projects: bool = False,
) -> list[Column]:
    """Return the columns that fit, the most needed ones first to get a place.

    Args:
        width: Cells that the table has.
        total: Width of the terminal, which decides how wide columns are.
        arrow: Mark beside the label of the column that rows are sorted by.
        sorted_by: Key of that column.
        has_projects: Whether rows are of several projects, which then have a column.
    """
    kinds = {kind.key: kind.at(total) for kind in _KINDS}
    left, chosen = width - GAP, set()
    for key in _PRIORITY:
        is_wanted = has_projects or key != "project"
        if not is_wanted or kinds[key].width + GAP > left:
            continue
        chosen.add(key)
        left -= kinds[key].width + GAP
    columns = [column for key, column in kinds.items() if key in chosen]
    if left > NOTE_LEAST:
        columns.append(Column("note", "NOTE", left - GAP))
    elif columns and left > 0:
        first = columns[0]
        columns[0] = Column(first.key, first.label, first.width + left, first.right)
    return [
        Column(one.key, one.label + arrow, one.width, one.right) if one.key == sorted_by else one
        for one in columns
    ]


def cell_of(facts: RowFacts, column: str, drawing: Drawing) -> Cell:
    """Return what stands in one cell."""
    return _CELLS[column](facts, drawing)


def _name(facts: RowFacts, drawing: Drawing) -> Cell:
    mark = ("*" if drawing.plain else "◉") if facts.key in drawing.marked else ""
    branch = ""
    if facts.is_child:
        corner, tee = ("`-", "|-") if drawing.plain else ("└ ", "├ ")
        branch = corner if facts.is_last else tee
    is_gone = facts.state == "GONE"
    text = f"{branch}{mark}{safe_text(facts.name, 200)}"
    return Cell(text, bold=not facts.is_child, dim=is_gone)


def _state(facts: RowFacts, drawing: Drawing) -> Cell:
    look = look_of(facts.state)
    word = safe_text(facts.state, 80)
    if facts.is_unhealthy and not drawing.shows_health:
        look = REPAIRING
        word = f"{word} {safe_text(facts.health, 80)}"
    return Cell(f"{drawing.mark_of(look)} {word}", look.variable)


def _health(facts: RowFacts, _: Drawing) -> Cell:
    if not facts.health:
        return Cell(fmt.NOTHING, dim=True)
    return Cell(safe_text(facts.health, 80), look_of(facts.health).variable)


def _aged(moment: datetime | None, drawing: Drawing) -> str:
    if moment is None:
        return fmt.NOTHING
    seconds = (drawing.now - moment).total_seconds()
    step = next((step for limit, step in AGE_STEPS if seconds < limit), None)
    if step is None:
        return fmt.age(moment, drawing.now.replace(second=0, microsecond=0))
    return fmt.age(moment, drawing.now, step=step)


def _age(facts: RowFacts, drawing: Drawing) -> Cell:
    return _plain(_aged(facts.since, drawing))


def _step(facts: RowFacts, _: Drawing) -> Cell:
    if facts.step is None:
        return _plain(fmt.NOTHING)
    target = "" if facts.target_step is None else f"/{fmt.number(facts.target_step)}"
    return _plain(f"{fmt.number(facts.step)}{target}")


def _heard(facts: RowFacts, drawing: Drawing) -> Cell:
    text = _aged(facts.heard, drawing)
    if facts.heard is None or not facts.is_training:
        return _plain(text)
    silent = (drawing.now - facts.heard).total_seconds()
    if silent >= SILENT_BAD_S:
        return Cell(text, "chart-bad", bold=True)
    return Cell(text, "chart-warn" if silent >= SILENT_WARN_S else "")


def _risk(facts: RowFacts, _: Drawing) -> Cell:
    return _plain(fmt.number(facts.steps_at_risk))


def _rate(facts: RowFacts, drawing: Drawing) -> Cell:
    if facts.costing is None:
        return _plain(fmt.NOTHING)
    cost = facts.cost(drawing.book, drawing.now)
    text = "?" if cost.per_hour_usd is None else fmt.dollars(cost.per_hour_usd)
    return Cell(text, bold=bool(cost.per_hour_usd), dim=not cost.per_hour_usd)


def _accrued(facts: RowFacts, drawing: Drawing) -> Cell:
    if facts.costing is None:
        return _plain(fmt.NOTHING)
    cost = facts.cost(drawing.book, drawing.now)
    if cost.accrued_usd is None:
        return _plain("?")
    text = fmt.dollars(cost.accrued_usd, at_least=cost.is_lower_bound and cost.accrued_usd > 0)
    return _plain(text.replace("≥", ">=") if drawing.plain else text)


def _owner(facts: RowFacts, drawing: Drawing) -> Cell:
    if facts.owner and drawing.hides_accounts:
        return Cell(MASK, dim=True)
    return _plain(safe_text(facts.owner, 300) or fmt.NOTHING)


def _plain(text: str) -> Cell:
    return Cell(text, dim=text == fmt.NOTHING)


def _count(value: int | None) -> Cell:
    return _plain(fmt.NOTHING if value is None else str(value))


def _workers(facts: RowFacts, _: Drawing) -> Cell:
    if facts.workers is None:
        return _plain(fmt.NOTHING)
    hosts = facts.hosts
    text = f"{facts.workers}/{'?' if hosts is None else hosts}"
    return Cell(text, "chart-warn" if hosts is not None and facts.workers < hosts else "")


def _words(attribute: str) -> Callable[[RowFacts, Drawing], Cell]:
    def cell(facts: RowFacts, _: Drawing) -> Cell:
        text = safe_text(getattr(facts, attribute), 300)
        return Cell(text or fmt.NOTHING, dim=not text or attribute == "note")

    return cell


_CELLS: Final[dict[str, Callable[[RowFacts, Drawing], Cell]]] = {
    "name": _name,
    "state": _state,
    "health": _health,
    "age": _age,
    "project": _words("project"),
    "type": _words("accelerator_type"),
    "chips": lambda facts, _: _count(facts.chips),
    "hosts": lambda facts, _: _count(facts.hosts),
    "workers": _workers,
    "scheduling": _words("scheduling"),
    "zone": _words("zone"),
    "step": _step,
    "examples": lambda facts, _: _plain(fmt.number(facts.examples_per_second)),
    "loss": lambda facts, _: _plain(fmt.number(facts.loss)),
    "heard": _heard,
    "risk": _risk,
    "rate": _rate,
    "accrued": _accrued,
    "owner": _owner,
    "note": _words("note"),
}
