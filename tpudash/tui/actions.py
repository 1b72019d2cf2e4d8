"""The one registry of actions: keys, footer, help screen, palette and README come from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.tui.action import Action, Danger, Offer, Situation
from tpudash.tui.hints import KeyHints
from tpudash.tui.pane import PaneId, SubjectKind
from tpudash.tui.pane_actions import PANE_ACTIONS
from tpudash.tui.replay_actions import REPLAY_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPERATOR_GROUP: Final = "Changes the cloud (always asks)"


def _needs_run(situation: Situation) -> str:
    subject = situation.subject
    if subject is None or subject.run is None:
        return "Select a run, or a node of a run, first."
    return ""


def _needs_target(situation: Situation) -> str:
    subject = situation.subject
    if subject is None:
        return "Select a run, a node or a request first."
    if subject.kind is SubjectKind.TOMBSTONE:
        return "That is gone already; {dismiss} dismisses its row."
    return ""


def _needs_node(situation: Situation) -> str:
    if situation.subject is None or situation.subject.node is None:
        return "Select a node, or a run that has one, first."
    if situation.subject.kind is SubjectKind.TOMBSTONE:
        return "That node is gone."
    return ""


def _pane_action(pane: PaneId, what: str) -> Action:
    return Action(
        id=f"pane-{pane}",
        keys=(str(pane.number),),
        label=str(pane),
        help=what,
        group="Panes",
    )


GLOBAL_ACTIONS: Final = (
    _pane_action(PaneId.NODES, "Go to the nodes pane: runs, their nodes, requests"),
    _pane_action(PaneId.UTILIZATION, "Go to the utilization pane"),
    _pane_action(PaneId.LOGS, "Go to the logs pane"),
    _pane_action(PaneId.COST, "Go to the cost pane"),
    _pane_action(PaneId.CHECKLIST, "Go to the troubleshooting checklist"),
    Action(
        id="zoom",
        keys=("z",),
        label="zoom",
        help="Give the focused pane the whole screen, or give it back",
        group="Panes",
        in_footer=True,
    ),
    Action(
        id="launch",
        keys=("L",),
        label="launch",
        help="Launch a training run on a new node",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
        in_footer=True,
    ),
    Action(
        id="resume",
        keys=("R",),
        label="resume",
        help="Continue the selected run on a new node, from its last checkpoint",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
        when=_needs_run,
        in_footer=True,
    ),
    Action(
        id="delete",
        keys=("D",),
        label="delete",
        help="Delete the selected run, node or request, or all marked ones; checkpoints are kept",
        group=OPERATOR_GROUP,
        danger=Danger.DESTROYS,
        needs_operator=True,
        when=_needs_target,
        in_footer=True,
    ),
    Action(
        id="supervise",
        keys=("A",),
        label="supervise",
        help="Resume the selected run by itself whenever it is preempted, or no longer",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
        needs=Offer.SUPERVISION,
        when=_needs_run,
        in_footer=True,
    ),
    Action(
        id="clean-up",
        keys=("U",),
        label="clean up",
        help="List what is dead, leaked, idle or over its time, and delete what is marked of it",
        group=OPERATOR_GROUP,
        danger=Danger.DESTROYS,
        needs_operator=True,
    ),
    Action(
        id="budgets",
        keys=("B",),
        label="budgets",
        help="Show the budgets of this project beside our estimate; make or change a budget alert",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
        needs=Offer.BUDGETS,
    ),
    Action(
        id="follow",
        keys=("F",),
        label="follow operations",
        help="Take up the operations that another session began and did not end",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
    ),
    Action(
        id="take-control",
        keys=("T",),
        label="take control",
        help="Take control of the project away from the console that has it",
        group=OPERATOR_GROUP,
        needs_operator=True,
        needs=Offer.CONTROL,
    ),
    Action(
        id="preempt",
        keys=(),
        label="preempt this node (emulator)",
        help="Take the selected node away as Google would, with a notice of 10 seconds",
        group=OPERATOR_GROUP,
        danger=Danger.CHANGES,
        needs_operator=True,
        needs=Offer.PREEMPTION,
        when=_needs_node,
    ),
    Action(
        id="operations",
        in_footer=True,
        keys=("o",),
        label="operations",
        help="Show all operations, with their steps and why they failed",
    ),
    Action(
        id="history",
        keys=("i",),
        label="history",
        help="Show what happened, also before this console was opened: states, events, cost",
    ),
    Action(
        id="filter",
        keys=("/",),
        label="filter",
        help="Show only what matches: words, !word to leave out, state:READY for one column",
        in_footer=True,
    ),
    Action(
        id="sort",
        keys=("s",),
        label="sort",
        help="Sort the nodes by the next column",
        in_footer=True,
    ),
    Action(
        id="pause",
        in_footer=True,
        keys=("p",),
        label="pause",
        help="Hold the display still while data keeps coming, or let it go on",
    ),
    Action(
        id="copy",
        in_footer=True,
        keys=("y",),
        label="copy",
        help="Copy the selected row or the visible text, and save it to a file",
    ),
    Action(
        id="palette",
        keys=(":", "ctrl+p"),
        label="palette",
        help="Find any action by its name",
        in_footer=True,
    ),
    Action(
        id="help",
        keys=("?",),
        label="help",
        help="Show all keys and what the focused pane shows",
        in_footer=True,
    ),
    Action(id="theme", keys=(), label="theme", help="Choose another theme for this session"),
    Action(
        id="quit",
        keys=("q", "ctrl+q", "ctrl+c"),
        label="quit",
        help="Leave; nodes keep running, and it says so if they are billed",
        in_footer=True,
    ),
)

ACTIONS: Final = (*REPLAY_ACTIONS, *GLOBAL_ACTIONS, *PANE_ACTIONS)


def find_action(action_id: str) -> Action | None:
    """Return the action with this id, or None."""
    return next((action for action in ACTIONS if action.id == action_id), None)


def keys_table(
    actions: Iterable[Action] = ACTIONS, keymap: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    """Return the README's table of keys in Markdown."""
    chosen = keymap or {action.id: action.keys for action in ACTIONS}
    hints = KeyHints(chosen)
    lines = ["| Key | Id | What it does |", "|---|---|---|"]
    # A replay's keys go before the others on the screen, but few readers come for them.
    for action in sorted(actions, key=lambda action: action.needs is Offer.REPLAY):
        keys = chosen[action.id]
        shown = " ".join(f"`{key}`" for key in keys) or "palette"
        where = f" ({_where(action)})" if _where(action) else ""
        lines.append(f"| {shown} | {action.id} | {hints.fill(action.help)}{where} |")
    return "\n".join(lines) + "\n"


def _where(action: Action) -> str:
    """Return in words where an action is there, or nothing for everywhere."""
    if action.needs is Offer.REPLAY:
        return "in a replay"
    return f"{action.scope} pane" if action.scope else ""
