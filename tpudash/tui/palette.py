"""The palette: every action of the registry that exists in this mode, found by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from textual.command import DiscoveryHit, Hit, Provider

from tpudash.tui.actions import ACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.command import Hits

    from tpudash.tui.action import Action, Situation
    from tpudash.tui.hints import KeyHints


class PaletteHost(Protocol):
    """What the palette needs of the app."""

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken."""

    @property
    def recent(self) -> tuple[str, ...]:
        """Ids of the actions that were taken last, the newest first."""

    @property
    def hints(self) -> KeyHints:
        """The keys that texts name."""

    def perform(self, action_id: str) -> None:
        """Take an action."""


class ActionProvider(Provider):
    """Offers actions; recent ones first."""

    @property
    def _host(self) -> PaletteHost:
        return cast("PaletteHost", self.app)

    def _actions(self) -> Iterator[Action]:
        situation, recent = self._host.situation, self._host.recent

        def rank(action: Action) -> int:
            return recent.index(action.id) if action.id in recent else len(recent)

        for action in sorted(ACTIONS, key=rank):
            if action.exists(situation) and action.id != "palette":
                yield action

    def _help(self, action: Action) -> str:
        reason = action.hindrance(self._host.situation, self._host.hints)
        words = self._host.hints.fill(action.help)
        return f"{words}. Not now: {reason}" if reason else words

    async def discover(self) -> Hits:
        """Offer everything while nothing is typed."""
        for action in self._actions():
            yield DiscoveryHit(
                action.label, partial(self._host.perform, action.id), help=self._help(action)
            )

    async def search(self, query: str) -> Hits:
        """Offer what matches by label, else by id or help."""
        matcher = self.matcher(query)
        for action in self._actions():
            score = matcher.match(action.label)
            other = max(matcher.match(action.id), matcher.match(action.help) * 0.5)
            if max(score, other) > 0:
                yield Hit(
                    max(score, other),
                    matcher.highlight(action.label),
                    partial(self._host.perform, action.id),
                    text=action.label,
                    help=self._help(action),
                )
