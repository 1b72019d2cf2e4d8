"""The rows of the action registry that belong to one pane; they work while it has the focus.

The app resolves the key and calls `Pane.perform(action_id)`.
"""

from __future__ import annotations

from typing import Final

from tpudash.tui.action import Action
from tpudash.tui.pane import PaneId

NODES_ACTIONS: Final = (
    Action(
        id="details",
        keys=("enter",),
        label="details",
        help="Show everything that is known of the selected row",
        group="Nodes",
        scope=PaneId.NODES,
        in_footer=True,
    ),
    Action(
        id="mark",
        keys=("space",),
        label="mark",
        help="Mark or unmark the selected row; D then deletes all marked rows at once",
        group="Nodes",
        scope=PaneId.NODES,
    ),
    Action(
        id="dismiss",
        keys=("x",),
        label="dismiss",
        help="Forget the selected vanished node; with none selected, all of them",
        group="Nodes",
        scope=PaneId.NODES,
    ),
)

UTILIZATION_ACTIONS: Final[tuple[Action, ...]] = ()
LOGS_ACTIONS: Final[tuple[Action, ...]] = ()
COST_ACTIONS: Final[tuple[Action, ...]] = ()
CHECKLIST_ACTIONS: Final[tuple[Action, ...]] = ()

PANE_ACTIONS: Final = (
    *NODES_ACTIONS,
    *UTILIZATION_ACTIONS,
    *LOGS_ACTIONS,
    *COST_ACTIONS,
    *CHECKLIST_ACTIONS,
)
