"""What an action is: one row of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.pane import PaneId, Subject


class Danger(StrEnum):
    """What an action can do to the world."""

    NONE = "none"
    CHANGES = "changes the cloud"
    DESTROYS = "deletes"


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether an action can be taken now.

    Attributes:
        is_operator: There is an operations room to ask.
        is_emulator: The connection is a local emulator, and its control is at hand.
        subject: The selected thing, or None.
        pane: The pane that has the focus.
    """

    is_operator: bool
    is_emulator: bool
    subject: Subject | None
    pane: PaneId


def always(_: Situation) -> str:
    """Say that nothing stands in the way."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that the user can do.

    Attributes:
        id: Stable; the keymap, the palette and findings of the checklist name it.
        keys: Default keys, as characters (`L`, `/`) or names (`enter`, `ctrl+p`).
        label: One or two words for the footer.
        help: One sentence for the help screen, the palette and the README.
        group: Heading in the help screen.
        scope: The pane that must have the focus, or None for everywhere.
        needs_operator: Does not exist in watch mode.
        when: Returns "" if it can be taken now, else the reason why not.
        in_footer: Whether the footer may show it.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str = "Everywhere"
    danger: Danger = Danger.NONE
    scope: PaneId | None = None
    needs_operator: bool = False
    when: Callable[[Situation], str] = always
    in_footer: bool = False

    @property
    def scope_name(self) -> str:
        """The scope as a word, "" for everywhere."""
        return "" if self.scope is None else str(self.scope)
