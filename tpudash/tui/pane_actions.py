"""The rows of the action registry that belong to one pane; they work while it has the focus.

The app resolves the key and calls `Pane.perform(action_id)`.
"""

from __future__ import annotations

from typing import Final

from tpudash.tui.action import Action, Offer, Situation
from tpudash.tui.pane import PaneId, SubjectKind


def _is_on_node(situation: Situation) -> bool:
    return situation.subject is not None and situation.subject.kind is SubjectKind.NODE


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
        id="shell",
        keys=("s",),
        label="shell",
        help="On a node: open a shell on one of its workers; leaving it brings the screen back",
        group="Nodes",
        scope=PaneId.NODES,
        needs_operator=True,
        needs=Offer.SHELL,
        claims=_is_on_node,
        in_footer=True,
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

UTILIZATION_ACTIONS: Final = (
    Action(
        id="charts-next",
        keys=("c",),
        label="next charts",
        help="Show the next charts: loss, examples/s, step time, duty cycle, CPU, memory",
        group="Utilization",
        scope=PaneId.UTILIZATION,
        in_footer=True,
    ),
    Action(
        id="charts-glyphs",
        keys=("b",),
        label="draw with",
        help="Draw the charts with blocks, braille or ASCII",
        group="Utilization",
        scope=PaneId.UTILIZATION,
    ),
)


def _logs_action(name: str, key: str, label: str, what: str, *, in_footer: bool = False) -> Action:
    return Action(
        id=f"logs-{name}",
        keys=(key,),
        label=label,
        help=what,
        group="Logs",
        scope=PaneId.LOGS,
        in_footer=in_footer,
    )


LOGS_ACTIONS: Final = (
    _logs_action(
        "follow", "f", "follow", "Stand still, or go to the newest line and follow", in_footer=True
    ),
    _logs_action(
        "next-error", "e", "next error", "Go to the next newer line with an error", in_footer=True
    ),
    _logs_action(
        "previous-error", "E", "previous error", "Go to the next older line with an error"
    ),
    _logs_action(
        "next-event", "n", "next event", "Go to the next newer checkpoint, restart or end of a run"
    ),
    _logs_action(
        "previous-event",
        "N",
        "previous event",
        "Go to the next older checkpoint, restart or end of a run",
    ),
    _logs_action("wrap", "w", "wrap", "Wrap long lines, or let them go beyond the edge"),
    _logs_action("time", "t", "time", "Show times (UTC), or how long ago it was"),
    _logs_action(
        "scope", "a", "all", "Show the lines of all runs, or of the selected run or node only"
    ),
)
COST_ACTIONS: Final[tuple[Action, ...]] = ()
CHECKLIST_ACTIONS: Final[tuple[Action, ...]] = ()

PANE_ACTIONS: Final = (
    *NODES_ACTIONS,
    *UTILIZATION_ACTIONS,
    *LOGS_ACTIONS,
    *COST_ACTIONS,
    *CHECKLIST_ACTIONS,
)
