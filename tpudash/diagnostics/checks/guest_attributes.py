"""Whether a node's VM has booted so far that it tells its host keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.worker_probe import no_question, workers_of_node
from tpudash.domain.probe import ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "guest-attributes",
    "VM tells its host keys",
    Scope.NODE,
    why="READY says that the VM was made, not that its system has booted.",
    rank=53,
    group=Group.SSH,
    probe=workers_of_node(ProbeKind.GUEST_ATTRIBUTES),
)


def check(evidence: Evidence) -> Finding:
    """Warn of a READY node whose VMs have not written their host keys."""
    node = evidence.node
    pointless = no_question(ABOUT, evidence, "emulated workers have no host keys")
    if node is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no node")
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
