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
        help="Mark or unmark the selected row; {delete} then deletes all marked rows at once",
        group="Nodes",
        scope=PaneId.NODES,
        needs_operator=True,
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
        help="Forget the selected vanished node or request; with none selected, all of them",
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
    *(
        Action(
            id=f"charts-{name}",
            keys=(key,),
            label=label,
            help=what,
            group="Utilization",
            scope=PaneId.UTILIZATION,
            in_footer=name in {"full", "save"},
        )
        for name, key, label, what in (
            ("full", "f", "full chart", "Give the first chart all the room, or show several again"),
            ("left", "left", "read left", "Read the chart at the sample before; it names the time"),
            (
                "right",
                "right",
                "read right",
                "Read the chart at the next sample; at the end, let go",
            ),
            ("closer", "+", "closer", "Show a shorter stretch of time"),
            ("wider", "-", "wider", "Show a longer stretch of time"),
            ("save", "e", "export", "Save the curves that are shown as CSV and JSON"),
        )
    ),
)


_TAKEN_KEYS: Final = frozenset("/s")
"""Keys that mean something else in other panes."""


def _always(_: Situation) -> bool:
    return True


def _logs_action(name: str, key: str, label: str, what: str, *, in_footer: bool = False) -> Action:
    return Action(
        id=f"logs-{name}",
        keys=(key,),
        label=label,
        help=what,
        group="Logs",
        scope=PaneId.LOGS,
        claims=_always if key in _TAKEN_KEYS else None,
        in_footer=in_footer,
    )


def _logs_jumps(name: str, what: str, newer: str, older: str) -> tuple[Action, Action]:
    return (
        _logs_action(f"next-{name}", newer, f"next {name}", f"Go to the next newer {what}"),
        _logs_action(f"previous-{name}", older, f"previous {name}", f"Go to the next older {what}"),
    )


LOGS_ACTIONS: Final = (
    _logs_action(
        "search",
        "/",
        "search",
        "Search; {logs-next-match} and {logs-previous-match} go on from match to match",
        in_footer=True,
    ),
    _logs_action("filter", "&", "filter", "Show only lines that match", in_footer=True),
    *_logs_jumps("match", "line that the search finds, folded ones too", "n", "N"),
    _logs_action(
        "follow", "f", "follow", "Stand still, or go to the newest line and follow", in_footer=True
    ),
    *_logs_jumps("error", "line with an error", "e", "E"),
    *_logs_jumps("step", "step of a run", ".", ","),
    *_logs_jumps("checkpoint", "checkpoint of a run", "c", "C"),
    *_logs_jumps("restart", "start, restore or preemption of a run", "x", "X"),
    *_logs_jumps("event", "checkpoint, restart, error or end of a run", "]", "["),
    _logs_action(
        "cause",
        "!",
        "cause",
        "Go to the line that names the cause of the failure; once more: to the checklist's row",
        in_footer=True,
    ),
    _logs_action("line", "enter", "whole line", "Show the whole line, what is folded behind it"),
    _logs_action("fold", "u", "unfold", "Open tracebacks, dumps and x32, or fold them again"),
    _logs_action("severity", "v", "severity", "Show all lines, warnings and above, or errors only"),
    _logs_action("only-worker", "=", "this worker", "Show this line's worker only, or all again"),
    _logs_action("more-context", "+", "more beside", "Show one more line beside those that match"),
    _logs_action("less-context", "-", "fewer beside", "Show one line less beside them"),
    _logs_action("bookmark", "b", "bookmark", "Set a bookmark at this line, or take it away"),
    _logs_action("next-bookmark", "'", "next bookmark", "Go to the next bookmark"),
    _logs_action("heartbeat", "h", "heartbeat", "Show when each worker was heard last, or the log"),
    _logs_action("save", "s", "save", "Save the lines that are shown in a file"),
    _logs_action("wrap", "w", "wrap", "Wrap long lines, or let them go beyond the edge"),
    _logs_action("time", "t", "time", "Show times (UTC), or how long ago it was"),
    _logs_action(
        "scope", "a", "all", "Show the lines of all runs, or of the selected run or node only"
    ),
)
COST_ACTIONS: Final = (
    Action(
        id="cost-view",
        keys=("v",),
        label="by owner",
        help="Show what each owner costs, or each run and node again",
        group="Cost",
        scope=PaneId.COST,
        in_footer=True,
    ),
)
CHECKLIST_ACTIONS: Final[tuple[Action, ...]] = ()

PANE_ACTIONS: Final = (
    *NODES_ACTIONS,
    *UTILIZATION_ACTIONS,
    *LOGS_ACTIONS,
    *COST_ACTIONS,
    *CHECKLIST_ACTIONS,
)
