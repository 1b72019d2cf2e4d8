"""Whether the zone offers the run's accelerator type and runtime version."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.advice import other_zones
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.probe import ProbeKey, ProbeKind, ZoneOffer
from tpudash.domain.run import AT_WORK, RunState
from tpudash.domain.runtimes import misfit

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import RunSpec

OVER: Final = frozenset({RunState.FINISHED, RunState.DELETED, *AT_WORK})


def _probe(evidence: Evidence) -> ProbeKey | None:
    run = evidence.run
    if run is None or run.spec is None or run.state in OVER:
        return None
    return ProbeKey(ProbeKind.ZONE_OFFER, run.spec.zone)


ABOUT: Final = About(
    "type-offered",
    "Zone offers the type and the runtime",
    Scope.RUN,
    why="A zone that does not offer them never will, however long one waits.",
    rank=6,
    group=Group.CREATION,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Fail for a type or an image that the zone's lists do not have, or that do not fit."""
    run = evidence.run
    spec = run.spec if run else None
    if run is None or spec is None or run.state in OVER:
        return ABOUT.not_applicable(
            evidence, f"it is {run.state}" if run else "no run is asked about"
        )
    kind = load_catalog().find(spec.accelerator_type)
    problem = misfit(spec.runtime_version, kind) if kind else None
    if problem is not None:
        return ABOUT.failed(
            evidence,
            f"{spec.runtime_version} on {spec.accelerator_type}: {problem}",
            advice="Launch it with a runtime version that fits; without --runtime one is chosen.",
        )
    answer = ABOUT.answer(evidence)
    offer = answer.value if answer else None
    if not isinstance(offer, ZoneOffer):
        return ABOUT.unanswered(
            evidence,
            command=f"gcloud compute tpus accelerator-types list --zone={spec.zone}",
        )
    return _judge(spec, offer, evidence)


def _judge(spec: RunSpec, offer: ZoneOffer, evidence: Evidence) -> Finding:
    if spec.accelerator_type not in offer.accelerator_types:
        zones = other_zones(spec.accelerator_type, spec.zone, spec.scheduling, evidence.prices)
        elsewhere = (
            f" {spec.accelerator_type} is offered in {', '.join(zones[:4])}." if zones else ""
        )
        near = difflib.get_close_matches(spec.accelerator_type, offer.accelerator_types, n=3)
        there = f" {spec.zone} has {', '.join(near)}." if near else ""
        return ABOUT.failed(
            evidence,
            f"{spec.zone} does not offer {spec.accelerator_type}",
            advice=f"Launch it where it is offered.{elsewhere}{there}",
        )
    if spec.runtime_version not in offer.runtime_versions:
        return ABOUT.failed(
            evidence,
            f"{spec.zone} has no runtime version {spec.runtime_version}",
            advice="Launch it with one of the zone's; without --runtime one is chosen.",
            command=f"gcloud compute tpus tpu-vm versions list --zone={spec.zone}",
        )
    return ABOUT.passed(
        evidence, f"{spec.zone} offers {spec.accelerator_type} and {spec.runtime_version}"
    )
