"""Whether the trainer was told the address of its own node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.accelerator import load_catalog
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "tpu-address",
    "Trainer has its node's address",
    Scope.RUN,
    why="A trainer that dials another node, or a dead address, waits without a word.",
    rank=24,
    source=LOGS,
    group=Group.CONNECT,
)
OWN: Final = frozenset({"", "local", "none", "auto"})


def check(evidence: Evidence) -> Finding:
    """Compare what the trainer was given with the node and its workers' addresses."""
    run, node = evidence.run, evidence.newest_node()
    if run is None or run.serves or node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, "no node of it is READY and trains")
    missing = [str(worker.index) for worker in node.workers if not worker.ip_address]
    if not node.workers or missing:
        which = f"worker {', '.join(missing)} has none" if missing else "the API names no worker"
        return ABOUT.warned(
            evidence,
            f"READY without addresses: {which}",
            advice="Wait a minute; if it stays so, make a new node.",
        )
    attempt = evidence.attempt
    started = evidence.newest_event("start", attempt.attempt if attempt else None)
    arguments = started.get("arguments") if started else None
    if not isinstance(arguments, dict):
        return ABOUT.unknown(evidence, "the trainer's start is not among the log entries read")
    given = str(arguments.get("tpu") or "")
    addresses = {worker.ip_address for worker in node.workers}
    host = given.removeprefix("grpc://").partition(":")[0]
    kind = load_catalog().find(node.accelerator_type)
    if given.lower() in OWN:
        return ABOUT.passed(evidence, "it looks for the chips of its own node")
    if given == node.node_id or host in addresses:
        hosts = f", {kind.hosts} hosts" if kind else ""
        return ABOUT.passed(evidence, f"--tpu {given}{hosts}")
    return ABOUT.warned(
        evidence,
        f"--tpu {given}, but its node is {node.node_id} at {', '.join(sorted(addresses))}",
        advice="Leave --tpu out, or give it the node's name.",
    )
