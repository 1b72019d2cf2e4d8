"""How states look: a word, a glyph and a theme entry, so that colour never stands alone.

Themes give colours under `LOOK_VARIABLES`; a theme that lacks one falls back to a base colour.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "muted": "secondary",
        "state-ready": "success",
        "state-finished": "success",
        "state-creating": "primary",
        "state-waiting": "primary",
        "state-repairing": "warning",
        "state-preempted": "warning",
        "state-terminated": "error",
        "state-deleting": "secondary",
        "state-stopped": "secondary",
        "state-gone": "secondary",
        "state-unknown": "accent",
        "chart-ok": "success",
        "chart-warn": "warning",
        "chart-bad": "error",
        "chart-line": "primary",
        "chart-axis": "secondary",
        "log-debug": "secondary",
        "log-info": "foreground",
        "log-notice": "primary",
        "log-warning": "warning",
        "log-error": "error",
        "log-critical": "error",
        "log-step": "primary",
        "log-checkpoint": "success",
        "log-restart": "warning",
        "log-time": "secondary",
        "mode-operator": "warning",
        "mode-watch": "primary",
        "mode-emulator": "secondary",
        **{f"worker-{index}": "primary" for index in range(8)},
    }
)
"""Theme variables of ours, each with the base colour that stands in where a theme is silent."""


class Look(NamedTuple):
    """The glyph of a kind of state, and its ASCII stand-in, unless the theme has its own."""

    kind: str
    glyph: str
    plain_glyph: str

    @property
    def variable(self) -> str:
        """The theme variable of its colour."""
        return f"state-{self.kind}"


READY: Final = Look("ready", "●", "*")
FINISHED: Final = Look("finished", "✓", "+")
CREATING: Final = Look("creating", "◐", "~")
WAITING: Final = Look("waiting", "◌", ".")
REPAIRING: Final = Look("repairing", "▲", "^")
PREEMPTED: Final = Look("preempted", "◆", "!")
TERMINATED: Final = Look("terminated", "✗", "x")
DELETING: Final = Look("deleting", "◇", "-")
STOPPED: Final = Look("stopped", "■", "#")
GONE: Final = Look("gone", "†", "%")
UNKNOWN: Final = Look("unknown", "?", "?")

_WORDS: Final[Mapping[Look, tuple[str, ...]]] = MappingProxyType(
    {
        READY: ("READY", "ACTIVE", "TRAINING", "SERVING", "HEALTHY"),
        FINISHED: ("FINISHED", "DONE"),
        CREATING: (
            *("CREATING", "STARTING", "RESTARTING", "REIMAGING", "UNHIDING", "LAUNCHING"),
            *("RESUMING", "PROVISIONING", "RUNNING"),
        ),
        WAITING: ("WAITING", "WAITING_FOR_RESOURCES", "ACCEPTED"),
        REPAIRING: ("REPAIRING", "STALLED", "SUSPENDING", "INTERRUPTED", "TIMEOUT", "ALARM"),
        PREEMPTED: ("PREEMPTED",),
        TERMINATED: (*("TERMINATED", "FAILED", "UNHEALTHY_TENSORFLOW", "UNHEALTHY_MAINTENANCE"),),
        DELETING: ("DELETING", "STOPPING", "HIDING", "DELETED"),
        STOPPED: ("STOPPED", "SUSPENDED", "HIDDEN"),
        GONE: ("GONE",),
    }
)
ALL_LOOKS: Final = tuple(_WORDS)
_LOOKS: Final = {word: look for look, words in _WORDS.items() for word in words}


def look_of(state: str) -> Look:
    """Return the look of a word for a state or a health; unknown words look unknown."""
    return _LOOKS.get(state, UNKNOWN)
