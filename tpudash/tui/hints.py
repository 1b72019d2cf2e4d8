"""Texts that name keys: written with the ids of actions, shown with the keys that the user has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ID: Final = re.compile(r"\{([a-z][a-z-]*)\}")


class KeyHints:
    """Fills the keys into a text such as `{dismiss} forgets it`.

    Args:
        keymap: The keys of every action, by its id.
    """

    def __init__(self, keymap: Mapping[str, tuple[str, ...]]) -> None:
        self._keymap = keymap

    def key(self, action_id: str) -> str:
        """Return the first key of an action, or where to find it when it has none."""
        keys = self._keymap.get(action_id, ())
        return keys[0] if keys else f"'{action_id.replace('-', ' ')}' in the palette"

    def key_or(self, action_id: str, other: str) -> str:
        """Return the first key of an action, or another key when it has none."""
        return next(iter(self.keys(action_id)), other)

    def keys(self, action_id: str) -> tuple[str, ...]:
        """Return all keys of an action."""
        return self._keymap.get(action_id, ())

    def fill(self, words: str) -> str:
        """Return a text with `{id}` replaced; it must be our own text, nothing from outside."""
        return _ID.sub(lambda found: self.key(found[1]), words)
