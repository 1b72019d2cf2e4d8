"""Our themes as Textual knows them: base colours, and variables for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.theme import Theme

if TYPE_CHECKING:
    from tpudash.config.themes import ThemeSpec


def textual_theme(spec: ThemeSpec) -> Theme:
    """Return a theme for `App.register_theme`.

    Its variables are `state-KIND`, `chart-PART`, `log-KIND`, `mode-NAME`, `worker-N` (from 0) and
    `muted`, beside those of Textual's own that decide how readable a cursor or a border is.
    """
    colors = spec.colors
    return Theme(
        name=spec.name,
        primary=colors["primary"],
        secondary=colors["secondary"],
        accent=colors["accent"],
        background=colors["background"],
        surface=colors["surface"],
        panel=colors["panel"],
        foreground=colors["foreground"],
        success=colors["success"],
        warning=colors["warning"],
        error=colors["error"],
        dark=spec.dark,
        ansi=spec.ansi,
        variables=_variables(spec),
    )


def _variables(spec: ThemeSpec) -> dict[str, str]:
    colors = spec.colors
    return {
        "muted": colors["muted"],
        "text-muted": colors["muted"],
        "border": colors["primary"],
        "border-blurred": colors["border"],
        "block-cursor-background": colors["cursor"],
        "block-cursor-foreground": colors["cursor-text"],
        "footer-key-foreground": colors["primary"],
        **{f"state-{kind}": look.color for kind, look in spec.states.items()},
        **{f"chart-{part}": color for part, color in spec.charts.items()},
        **{f"log-{kind}": color for kind, color in spec.log.items()},
        **{f"mode-{name}": color for name, color in spec.modes.items()},
        **{f"worker-{at}": color for at, color in enumerate(spec.workers)},
        **(_terminal_variables(dark=spec.dark) if spec.ansi else {}),
    }


def _terminal_variables(*, dark: bool) -> dict[str, str]:
    """Return what Textual's own styles need of a theme of terminal colours, and no more."""
    ground, ink = ("ansi_black", "ansi_white") if dark else ("ansi_white", "ansi_black")
    strong = "ansi_bright_white" if dark else "ansi_black"
    return {
        "ansi-background": ground,
        "ansi-foreground": ink,
        "surface-active": "ansi_default",
        "input-cursor-background": ink,
        "input-cursor-foreground": ground,
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
        "button-foreground": strong,
        "button-color-foreground": strong,
    }
