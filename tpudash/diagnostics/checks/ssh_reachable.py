"""Whether the workers of a node can be reached on port 22."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.worker_probe import no_question, workers_of_node
from tpudash.domain.probe import PortState, ProbeKind

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "ssh-reachable",
    "Workers are reachable on port 22",
    Scope.NODE,
    why="Without SSH the log is all there is; and a worker that is cut off may be dead.",
    rank=50,
    group=Group.SSH,
    probe=workers_of_node(ProbeKind.SSH_PORT),
)


def check(evidence: Evidence) -> Finding:
    """Warn of a port that is closed or silent, and of workers that only IAP reaches."""
    node = evidence.node
    pointless = no_question(ABOUT, evidence, "emulated workers are processes of this machine")
    if node is None or pointless is not None:
        return pointless or ABOUT.not_applicable(evidence, "no node")
    shell = f"gcloud compute tpus tpu-vm ssh {node.node_id} --zone={node.zone}"
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, dict):
        return ABOUT.unanswered(evidence, command=shell)
    return _judge(answer.value, shell, evidence)


def _judge(states: dict[int, str], shell: str, evidence: Evidence) -> Finding:
    text = ", ".join(f"worker {worker}: {state}" for worker, state in sorted(states.items()))
    if not states:
        return ABOUT.unknown(evidence, "the API names no worker")
    found = set(states.values())
    if found == {PortState.OPEN}:
        return ABOUT.passed(evidence, text)
    if found == {PortState.NO_ADDRESS}:
        return ABOUT.warned(
            evidence,
            text,
            advice="No worker has an external address: go through the Identity-Aware Proxy.",
            command=f"{shell} --tunnel-through-iap",
        )
    return ABOUT.warned(
        evidence,
        text,
        advice="No answer is mostly a firewall rule, a refusal a VM that has not booted yet.",
        command=f"{shell} --tunnel-through-iap",
    )
