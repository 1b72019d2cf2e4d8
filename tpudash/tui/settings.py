"""What the console is told at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tpudash.tui.pane import PaneId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tpudash.config.themes import ThemeSpec


@dataclass(frozen=True, slots=True)
class LaunchDefaults:
    """What the launch form offers first; each may be empty.

    Attributes:
        zones: Candidate zones in order of preference.
    """

    bucket: str = ""
    zones: tuple[str, ...] = ()
    accelerator_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """How the console looks and what its keys do.

    Attributes:
        theme: Name of the theme to begin with; one of `themes` or of Textual's own.
        themes: Themes that are known at the start; the first theme must be among them.
        more_themes: Reads all themes that can be chosen; called when another one is wanted.
        ascii: Draw with ASCII characters only.
        mouse: Ask the terminal for mouse events.
        panes: The panes to show, in any order; all five by default.
        rotate_s: Zoom the next pane every so many seconds; 0 for never.
        keymap: The user's keys by action id (`tpudash.config.keymap`).
        project: Shown in the status line until the connection says what it is.
        copy_file: File that receives what `y` copies, or None to save nothing.
        launch: What the launch form offers first.
        idle_for: For how long a node must have been of no use to be offered for clean-up.
        no_color: Use no colours at all.
        leave_note: Said when the user leaves while nodes are billed.
        notices: Messages to show once after the start, such as a theme that could not be read.
    """

    theme: str = "textual-dark"
    themes: tuple[ThemeSpec, ...] = ()
    more_themes: Callable[[], tuple[ThemeSpec, ...]] | None = None
    ascii: bool = False
    mouse: bool = True
    panes: tuple[PaneId, ...] = tuple(PaneId)
    rotate_s: float = 0.0
    keymap: Mapping[str, str] = field(default_factory=dict)
    project: str = ""
    copy_file: Path | None = None
    launch: LaunchDefaults = field(default_factory=LaunchDefaults)
    idle_for: timedelta = timedelta(minutes=15)
    no_color: bool = False
    notices: tuple[str, ...] = ()
    leave_note: str = "Leaving stops nothing: runs go on, and tpudash takes them up again."
