"""Whether a node that is gone for good still holds quota."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import counted
from tpudash.domain.accelerator import load_catalog

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "dead-node-listed",
    "No dead node holds quota",
    Scope.NODE,
    why="A preempted node never comes back, and its chips count against the quota until it is "
    "deleted.",
    rank=32,
    group=Group.COSTS,
)


def check(evidence: Evidence) -> Finding:
    """Warn of a node that is PREEMPTED or TERMINATED and still listed."""
    node = evidence.node
    if node is None:
        return ABOUT.not_applicable(evidence, "no node is asked about")
    if not node.is_dead:
        return ABOUT.passed(evidence, f"it is {node.state}")
    kind = load_catalog().find(node.accelerator_type)
    chips = counted(kind.chips, "chip") if kind else "its chips"
    resumed = f" A resume of {node.run} deletes it first." if node.run else ""
    return ABOUT.warned(
        evidence,
        f"{node.state} and still listed: {node.accelerator_type} holds quota for {chips}, "
        "and costs nothing",
        advice=f"Delete it.{resumed}",
        action="delete",
        command=f"tpudash delete {node.node_id}",
    )
