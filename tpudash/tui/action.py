"""What an action is: one row of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.tui.hints import KeyHints
    from tpudash.tui.pane import PaneId, Subject


class Danger(StrEnum):
    """What an action can do to the world."""

    NONE = "none"
    CHANGES = "changes the cloud"
    DESTROYS = "deletes"


class Offer(StrEnum):
    """What is not at hand everywhere; actions that need it exist only where it is."""

    PREEMPTION = "preemption"
    """The nodes are a local emulator's, which can take them away."""
    SHELL = "shell"
    SUPERVISION = "supervision"
    BUDGETS = "budgets"
    CONTROL = "control"
    """Control of the project is shared out between consoles."""
    REPLAY = "replay"
    """What is shown is a recording."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether an action can be taken now.

    Attributes:
        is_operator: There is an operations room to ask.
        subject: The selected thing, or None.
        pane: The pane that has the focus.
        offers: What else is at hand here.
        control: Why this console may not change anything now, or "".
    """

    is_operator: bool
    subject: Subject | None
    pane: PaneId
    offers: frozenset[Offer] = frozenset()
    control: str = ""


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
        help: One sentence for the help screen, the palette and the README; it names keys as
            `{id}` (`tpudash.tui.hints`).
        group: Heading in the help screen.
        scope: The pane that must have the focus, or None for everywhere.
        needs_operator: Does not exist in watch mode.
        needs: Does not exist where this is not at hand.
        claims: Whether it takes its key from a more general action now; None if it always does.
        when: Returns "" if it can be taken now, else the reason why not, with keys as `{id}`.
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
    needs: Offer | None = None
    claims: Callable[[Situation], bool] | None = None
    when: Callable[[Situation], str] = always
    in_footer: bool = False

    @property
    def scope_name(self) -> str:
        """The scope as a word, "" for everywhere."""
        return "" if self.scope is None else str(self.scope)

    @property
    def is_conditional(self) -> bool:
        """Whether it takes its keys only now and then, from an action that has them otherwise."""
        return self.claims is not None

    def exists(self, situation: Situation) -> bool:
        """Whether there is such an action at all here."""
        if self.needs_operator and not situation.is_operator:
            return False
        return self.needs is None or self.needs in situation.offers

    def takes_key(self, situation: Situation) -> bool:
        """Whether its key means it now, in the pane that has the focus."""
        if not self.exists(situation) or self.scope not in {None, situation.pane}:
            return False
        return self.claims is None or self.claims(situation)

    def hindrance(self, situation: Situation, hints: KeyHints) -> str:
        """Return why it can't be taken now, or ""."""
        if situation.control and self.danger is not Danger.NONE:
            return situation.control
        return hints.fill(self.when(situation))
