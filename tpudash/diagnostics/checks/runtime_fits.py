"""Whether the runtime version of a node is one for its accelerator type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.runtimes import is_known, misfit

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "runtime-fits",
    "Runtime version fits the type",
    Scope.NODE,
    why="An image for another type boots, and then the chips fail to initialise in odd ways.",
    rank=25,
    group=Group.CONNECT,
)


def check(evidence: Evidence) -> Finding:
    """Fail for an image that is known to be for something else."""
    node = evidence.node
    if node is None or node.is_dead:
        return ABOUT.not_applicable(evidence, "no living node is asked about")
    kind = load_catalog().find(node.accelerator_type)
    if kind is None:
        return ABOUT.unknown(evidence, f"{node.accelerator_type or 'its type'} is not known here")
    problem = misfit(node.runtime_version, kind)
    if problem is not None:
        return ABOUT.failed(
            evidence,
            f"{node.runtime_version} on {kind.name}: {problem}",
            advice="Delete the node and launch the run again with a runtime version that fits; "
            "without --runtime one is chosen.",
            action="delete",
            command=f"tpudash delete {node.node_id}",
        )
    if not is_known(node.runtime_version):
        return ABOUT.unknown(
            evidence,
            f"{node.runtime_version or 'its runtime version'} is not known here",
            command=f"gcloud compute tpus tpu-vm versions list --zone={node.zone}",
        )
    return ABOUT.passed(evidence, f"{node.runtime_version} fits {kind.name}")
