"""The panes by their ids: the one place that knows their classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.tui.pane import Pane, PaneId
from tpudash.tui.widgets.checklist_pane import ChecklistPane
from tpudash.tui.widgets.cost_pane import CostPane
from tpudash.tui.widgets.logs_pane import LogsPane
from tpudash.tui.widgets.nodes_pane import NodesPane
from tpudash.tui.widgets.utilization_pane import UtilizationPane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PANE_CLASSES: Final[Mapping[PaneId, Callable[[], Pane]]] = {
    PaneId.NODES: NodesPane,
    PaneId.UTILIZATION: UtilizationPane,
    PaneId.LOGS: LogsPane,
    PaneId.COST: CostPane,
    PaneId.CHECKLIST: ChecklistPane,
}


def create_panes(wanted: Iterable[PaneId]) -> dict[PaneId, Pane]:
    """Return one pane for each id, in the order of their numbers."""
    chosen = frozenset(wanted)
    return {pane_id: make() for pane_id, make in PANE_CLASSES.items() if pane_id in chosen}
