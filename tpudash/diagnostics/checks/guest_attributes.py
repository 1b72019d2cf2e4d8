"""Whether a node's VM has booted so far that it tells its host keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


MOST_NODES: Final = 20
"""Of more nodes than that, none is asked unless it is named."""


def _probe(evidence: Evidence) -> ProbeKey | None:
    node = evidence.node
    if node is None or not node.is_billing or evidence.is_emulator:
        return None
    if evidence.subject is None and len(evidence.snapshot.nodes) > MOST_NODES:
        return None
    return ProbeKey(ProbeKind.GUEST_ATTRIBUTES, node.name)


ABOUT: Final = About(
    "guest-attributes",
    "VM tells its host keys",
    Scope.NODE,
    why="READY says that the VM was made, not that its system has booted.",
    rank=53,
    group=Group.SSH,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Warn of a READY node whose VMs have not written their host keys."""
    node = evidence.node
    if node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, f"it is {node.state}" if node else "no node")
    if evidence.is_emulator:
        return ABOUT.not_applicable(evidence, "emulated workers have no host keys")
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, int):
        return ABOUT.unanswered(evidence)
    workers = max(1, len(node.workers))
    if answer.value >= workers:
        return ABOUT.passed(evidence, f"{answer.value} of {workers}")
    return ABOUT.warned(
        evidence,
        f"{answer.value} of {workers} workers have told their host keys",
        advice="Wait a minute after READY; if it stays so, the VM does not boot: make a new node.",
        command=f"gcloud compute tpus tpu-vm describe {node.node_id} --zone={node.zone}",
    )
