"""Whether the host has memory and disk left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import LOGS
from tpudash.store.training_curve import number_in

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "host-room",
    "Host has memory and disk left",
    Scope.RUN,
    why="A full disk or memory ends a run at its next checkpoint, without a clear word.",
    rank=35,
    source=LOGS,
    group=Group.MEMORY,
)
LEAST_DISK: Final = 2 * 2**30
MOST_MEMORY: Final = 0.95
GIB: Final = 2**30


def check(evidence: Evidence) -> Finding:
    """Warn by the figures that the agent last sent."""
    run = evidence.run
    if run is None or run.state not in {*AT_WORK, RunState.STALLED}:
        return ABOUT.not_applicable(evidence, "nothing trains")
    attempt = evidence.attempt
    figures = evidence.newest_event("host", attempt.attempt if attempt else None)
    disk = number_in(figures, "disk_free_bytes")
    used, total = number_in(figures, "memory_used_bytes"), number_in(figures, "memory_total_bytes")
    if disk is None and (used is None or not total):
        return ABOUT.unknown(evidence, "its agent has not sent the host's figures")
    parts, short = [], []
    if disk is not None:
        parts.append(f"{disk / GIB:.1f} GiB of disk free")
        if disk < LEAST_DISK:
            short.append("the disk is nearly full")
    if used is not None and total:
        parts.append(f"{used / GIB:.1f} of {total / GIB:.1f} GiB of memory used")
        if used / total > MOST_MEMORY:
            short.append("the host's memory is nearly full")
    text = ", ".join(parts)
    if short and not evidence.is_emulator:
        return ABOUT.warned(
            evidence,
            f"{' and '.join(short)}: {text}",
            advice="Use a smaller shuffle buffer and cache; keep data in the bucket.",
        )
    return ABOUT.passed(evidence, text)
