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
    }
