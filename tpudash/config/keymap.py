"""The user's keys laid over the default ones, checked before anything is drawn."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, Protocol

from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RESERVED_KEYS: Final = frozenset({"ctrl+h", "ctrl+i", "ctrl+j", "ctrl+m", "ctrl+["})
"""Keys that terminals send as backspace, tab, enter and escape."""
MOVING_KEYS: Final = frozenset(
    {
        *("up", "down", "k", "j", "pageup", "pagedown", "ctrl+b", "ctrl+f"),
        *("home", "end", "g", "G", "tab", "shift+tab", "escape"),
    }
)
"""Keys that move in every pane, so that an action on one of them would never be taken."""

_SYMBOL_NAMES: Final = {
    "colon": ":",
    "comma": ",",
    "exclamation_mark": "!",
    "full_stop": ".",
    "minus": "-",
    "number_sign": "#",
    "plus": "+",
    "question_mark": "?",
    "semicolon": ";",
    "slash": "/",
    "underscore": "_",
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
}


class KeyedAction(Protocol):
    """What the keymap must know of an action."""

    @property
    def id(self) -> str:
        """Stable id."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Default keys."""

    @property
    def scope_name(self) -> str:
        """The pane in which the keys hold, "" for everywhere."""

    @property
    def is_conditional(self) -> bool:
        """Whether it takes its keys only now and then, from an action that has them otherwise."""


def resolve_keymap(
    actions: Iterable[KeyedAction], chosen: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the keys of every action, by id.

    Args:
        actions: The registry.
        chosen: The user's keys by action id, several separated by commas; "" takes all keys away.

    Raises:
        ConfigurationError: An id is unknown, a key cannot be used, or two actions that can be
            meant at the same time have the same key.
    """
    known = {action.id: action for action in actions}
    for action_id in chosen:
        if action_id not in known:
            near = difflib.get_close_matches(action_id, known, n=1, cutoff=0.0)
            raise ConfigurationError(
                f"There is no action {action_id!r} to give keys to",
                detail=f"keys.{action_id} = {chosen[action_id]!r}",
                hint=f"The nearest one is {near[0]!r}." if near else "",
            )
    keymap = {
        action_id: _parse(action_id, chosen[action_id])
        if action_id in chosen
        else tuple(canonical_key(key) for key in action.keys)
        for action_id, action in known.items()
    }
    _refuse_clashes(known, keymap)
    return keymap


def canonical_key(key: str) -> str:
    """Return one spelling for each key: symbols as themselves, names in lower case."""
    text = key.strip()
    if len(text) == 1:
        return text
    lowered = text.lower()
    *modifiers, last = lowered.split("+") if not lowered.endswith("++") else (lowered[:-2], "+")
    return "+".join((*modifiers, _SYMBOL_NAMES.get(last, last)))


def _parse(action_id: str, text: str) -> tuple[str, ...]:
    keys = tuple(canonical_key(part) for part in text.split(",") if part.strip())
    for key in keys:
        why = _why_taken(key)
        if why:
            raise ConfigurationError(
                f"The key {key!r} cannot be used",
                detail=f"keys.{action_id} = {text!r}: {why}",
                hint="Choose another letter, a symbol or a function key.",
            )
    return keys


def _why_taken(key: str) -> str:
    if key in RESERVED_KEYS:
        return "terminals send it as another key"
    return "it moves through the rows and panes" if key in MOVING_KEYS else ""


def _refuse_clashes(
    actions: Mapping[str, KeyedAction], keymap: Mapping[str, tuple[str, ...]]
) -> None:
    taken: dict[str, list[KeyedAction]] = {}
    for action_id, keys in keymap.items():
        action = actions[action_id]
        for key in keys:
            for other in taken.setdefault(key, []):
                if _can_be_meant_together(action, other):
                    raise ConfigurationError(
                        f"The key {key!r} is given to two actions",
                        detail=f"{other.id} and {action.id}",
                        hint=f"Give one of them another key: keys.{action.id} = ...",
                    )
            taken[key].append(action)


def _can_be_meant_together(one: KeyedAction, other: KeyedAction) -> bool:
    if one.is_conditional or other.is_conditional:
        return False
    has_other_scope = one.scope_name != other.scope_name
    return not (one.scope_name and other.scope_name and has_other_scope)
