"""How states look: a word, a glyph and a theme entry, so that colour never stands alone.

Themes give colours under `LOOK_VARIABLES`; a theme that lacks one falls back to a base colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "state-ready": "success",
        "state-finished": "success",
        "state-creating": "primary",
        "state-waiting": "primary",
        "state-repairing": "warning",
        "state-preempted": "warning",
        "state-terminated": "error",
        "state-deleting": "secondary",
        "state-stopped": "secondary",
        "state-gone": "foreground",
        "state-unknown": "accent",
        "chart-ok": "success",
        "chart-warn": "warning",
        "chart-bad": "error",
        "chart-line": "primary",
        "chart-axis": "foreground",
        "log-debug": "foreground",
        "log-info": "foreground",
        "log-notice": "foreground",
        "log-warning": "warning",
        "log-error": "error",
        "log-critical": "error",
        "log-step": "primary",
        "log-checkpoint": "success",
        "log-restart": "warning",
        "log-time": "foreground",
        "muted": "foreground",
        "mode-operator": "warning",
        "mode-watch": "primary",
        "mode-emulator": "secondary",
    }
)
"""Theme variables of ours, each with the base colour that stands in where a theme is silent."""


@dataclass(frozen=True, slots=True)
class Look:
    """The glyph and the theme variable of one kind of state."""

    glyph: str
    plain_glyph: str
    variable: str

    def mark(self, *, plain: bool) -> str:
        """Return the glyph, or its ASCII stand-in."""
        return self.plain_glyph if plain else self.glyph


READY: Final = Look("●", "*", "state-ready")
DONE: Final = Look("✔", "+", "state-ready")
BUSY: Final = Look("◐", "~", "state-creating")
WAITING: Final = Look("◌", ".", "state-creating")
WARN: Final = Look("▲", "^", "state-repairing")
PREEMPTED: Final = Look("◆", "!", "state-preempted")
DEAD: Final = Look("✖", "x", "state-terminated")
LEAVING: Final = Look("◇", "-", "state-deleting")
GONE: Final = Look("†", "-", "state-deleting")
UNKNOWN: Final = Look("?", "?", "state-unknown")

_LOOKS: Final[Mapping[str, Look]] = MappingProxyType(
    {
        **dict.fromkeys(("READY", "ACTIVE", "TRAINING", "HEALTHY", "RUNNING"), READY),
        **dict.fromkeys(("FINISHED", "DONE"), DONE),
        **dict.fromkeys(
            ("CREATING", "STARTING", "RESTARTING", "REIMAGING", "UNHIDING", "LAUNCHING"), BUSY
        ),
        **dict.fromkeys(("RESUMING", "PROVISIONING"), BUSY),
        **dict.fromkeys(("WAITING", "WAITING_FOR_RESOURCES", "ACCEPTED"), WAITING),
        **dict.fromkeys(("REPAIRING", "STALLED", "SUSPENDING", "INTERRUPTED"), WARN),
        "TIMEOUT": WARN,
        "PREEMPTED": PREEMPTED,
        **dict.fromkeys(
            ("TERMINATED", "FAILED", "UNHEALTHY_TENSORFLOW", "UNHEALTHY_MAINTENANCE"), DEAD
        ),
        **dict.fromkeys(
            ("DELETING", "STOPPING", "STOPPED", "SUSPENDED", "HIDING", "HIDDEN", "DELETED"), LEAVING
        ),
        "GONE": GONE,
    }
)


def look_of(state: str) -> Look:
    """Return the look of a state, health or verdict word; unknown words look unknown."""
    return _LOOKS.get(state, UNKNOWN)
