"""Whether every zone answered the listing of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Scope
from tpudash.diagnostics.words import span
from tpudash.store.snapshot import NODES, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "zones-reachable",
    "All zones answer",
    Scope.PROJECT,
    why="Nodes of a zone that does not answer may exist and cost money; they are not gone.",
    rank=5,
)


def check(evidence: Evidence) -> Finding:
    """Warn of zones that did not answer."""
    silent = evidence.snapshot.unreachable
    if silent:
        zones = ", ".join(
            f"{zone} (for {span(evidence.now - since)})" for zone, since in sorted(silent.items())
        )
        return ABOUT.warned(
            evidence,
            f"no answer from {zones}",
            advice="What is shown of these zones is old, and totals are at least what they say. "
            "It mostly passes by itself.",
        )
    status = evidence.snapshot.sources.get(NODES)
    if status is None or status.state is not SourceState.OK:
        return ABOUT.unknown(evidence, "the nodes could not be listed")
    return ABOUT.passed(evidence, "every zone answered the last listing")
