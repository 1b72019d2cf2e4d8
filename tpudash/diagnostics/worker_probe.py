"""Questions that are put to the workers of a node, and when they make no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.domain.probe import ProbeKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from tpudash.diagnostics.check import About
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.probe import ProbeKind

MOST_NODES: Final = 20
"""Of more nodes than that, none is asked unless it is named."""


def workers_of_node(kind: ProbeKind) -> Callable[[Evidence], ProbeKey | None]:
    """Return the probe that asks the workers of a READY node of the real cloud."""

    def probe(evidence: Evidence) -> ProbeKey | None:
        node = evidence.node
        if node is None or not node.is_billing or evidence.is_emulator:
            return None
        if evidence.subject is None and len(evidence.snapshot.nodes) > MOST_NODES:
            return None
        return ProbeKey(kind, node.name)

    return probe


def no_question(about: About, evidence: Evidence, emulated: str) -> Finding | None:
    """Return why the workers are not asked, or None where they are.

    `emulated` says why there is nothing to ask in the emulator.
    """
    node = evidence.node
    if node is None or not node.is_billing:
        return about.not_applicable(evidence, f"it is {node.state}" if node else "no node")
    return about.not_applicable(evidence, emulated) if evidence.is_emulator else None
