"""Whether the runtime version of a node is one for its accelerator type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Scope
from tpudash.domain.accelerator import load_catalog

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.accelerator import AcceleratorType
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "runtime-fits",
    "Runtime version fits the type",
    Scope.NODE,
    why="An image for another type boots, and then the chips fail to initialise in odd ways.",
    rank=25,
)
TENSORFLOW: Final = re.compile(
    r"tpu-vm-tf-(?P<version>\d+\.\d+)[\d.]*(?P<pod>-pod)?(?:-(?:pjrt|se))?(?:-(?P<family>v\w.*))?"
)
FAMILIES: Final = {
    "v4": frozenset({"v4"}),
    "v5p-and-below": frozenset({"v2", "v3", "v4", "v5p"}),
    "v5e-and-v6": frozenset({"v5e", "v6e"}),
}
"""Generations that a TensorFlow image is for, by the end of its name."""
MADE_FOR: Final = {
    "v2-alpha-tpuv5-lite": "v5e",
    "v2-alpha-tpuv5": "v5p",
    "v2-alpha-tpuv6e": "v6e",
}
"""Images without a framework for one generation each.

Source: https://cloud.google.com/tpu/docs/runtimes
"""
FOR_ANY: Final = frozenset({"tpu-ubuntu2204-base", "tpu-vm-base"})


def check(evidence: Evidence) -> Finding:
    """Fail for an image that is known to be for something else."""
    node = evidence.node
    if node is None or node.is_dead:
        return ABOUT.not_applicable(evidence, "no living node is asked about")
    kind = load_catalog().find(node.accelerator_type)
    if kind is None:
        return ABOUT.unknown(evidence, f"{node.accelerator_type or 'its type'} is not known here")
    problem = _problem(node.runtime_version, kind)
    if problem is None:
        return ABOUT.unknown(
            evidence,
            f"{node.runtime_version or 'its runtime version'} is not known here",
            command=f"gcloud compute tpus tpu-vm versions list --zone={node.zone}",
        )
    if problem:
        return ABOUT.failed(
            evidence,
            f"{node.runtime_version} on {kind.name}: {problem}",
            advice="Delete the node and launch the run again with a runtime version that fits; "
            "without --runtime one is chosen.",
            action="node.delete",
            command=f"tpudash delete {node.node_id}",
        )
    return ABOUT.passed(evidence, f"{node.runtime_version} fits {kind.name}")


def _problem(runtime_version: str, kind: AcceleratorType) -> str | None:
    """Return what does not fit, "" if all does, or None if nothing is known of the image."""
    if runtime_version in FOR_ANY:
        return ""
    if runtime_version in MADE_FOR:
        made_for = MADE_FOR[runtime_version]
        return "" if made_for == kind.generation.name else f"it is made for {made_for}"
    image = TENSORFLOW.fullmatch(runtime_version)
    return None if image is None else _problem_of_tensorflow(image, kind)


def _problem_of_tensorflow(image: re.Match[str], kind: AcceleratorType) -> str:
    generation = kind.generation
    if not generation.supports_tensorflow:
        return f"TensorFlow does not run on {generation.name}"
    if kind.is_slice and not image["pod"]:
        return f"{kind.name} has {kind.hosts} hosts, so the image must be a -pod one"
    if image["pod"] and not kind.is_slice:
        return f"{kind.name} is one host, so the image must not be a -pod one"
    family = FAMILIES.get(image["family"] or "")
    if family is not None and generation.name not in family:
        return f"it is made for {image['family']}"
    return ""
