"""The rows of the action registry that move through a recording; they exist only in a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.tui.action import Action, Offer

if TYPE_CHECKING:
    from tpudash.tui.action import Situation


def _plays(situation: Situation) -> bool:
    return Offer.REPLAY in situation.offers


def _replay_action(name: str, key: str, label: str, what: str, *, shown: bool = False) -> Action:
    return Action(
        id=f"replay-{name}",
        keys=(key,),
        label=label,
        help=what,
        group="Replay",
        needs=Offer.REPLAY,
        claims=_plays,
        in_footer=shown,
    )


REPLAY_ACTIONS: Final = (
    _replay_action("pause", "p", "pause", "Let the recording stand still, or go on", shown=True),
    _replay_action("back", "<", "30s back", "Go back 30 seconds of the recording", shown=True),
    _replay_action("forward", ">", "30s on", "Go forward 30 seconds", shown=True),
    _replay_action("far-back", "(", "10m back", "Go back 10 minutes"),
    _replay_action("far-forward", ")", "10m on", "Go forward 10 minutes"),
    _replay_action(
        "next", ";", "next change", "Go to where a node comes, goes or changes", shown=True
    ),
    _replay_action("slower", "{", "slower", "Play the recording slower"),
    _replay_action("faster", "}", "faster", "Play the recording faster", shown=True),
)
