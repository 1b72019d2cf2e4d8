"""Whether a run's bucket lies in the region of its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.bucket_location import is_near
from tpudash.domain.probe import ProbeKey, ProbeKind
from tpudash.domain.resource_name import region_of
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


def _root(bucket: str) -> str:
    return "/".join(bucket.split("/")[:3])


def _probe(evidence: Evidence) -> ProbeKey | None:
    spec = evidence.run.spec if evidence.run else None
    if spec is None or not spec.bucket.startswith("gs://"):
        return None
    return ProbeKey(ProbeKind.BUCKET, _root(spec.bucket))


ABOUT: Final = About(
    "bucket-near",
    "Bucket is in the node's region",
    Scope.RUN,
    why="Data between regions is slow and billed by the gigabyte, and the bill comes hours later.",
    rank=55,
    source=RUNS,
    group=Group.SLOW,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Warn of a bucket elsewhere; a folder on this machine is nowhere else."""
    run = evidence.run
    spec = run.spec if run else None
    if run is None or spec is None or run.state in {RunState.FINISHED, RunState.DELETED}:
        return ABOUT.not_applicable(evidence, "nothing is to be trained")
    if not spec.bucket.startswith("gs://"):
        return ABOUT.not_applicable(evidence, f"{spec.bucket} is a folder on this machine")
    root = _root(spec.bucket)
    answer = ABOUT.answer(evidence)
    location = answer.value if answer else None
    if not isinstance(location, str) or not location:
        command = f"gcloud storage buckets describe {root} --format='value(location)'"
        return ABOUT.unanswered(evidence, command=command)
    node = evidence.newest_node()
    region = region_of(node.zone if node else spec.zone)
    if is_near(location, region):
        return ABOUT.passed(evidence, f"{root} is in {location.lower()}, the node in {region}")
    return ABOUT.warned(
        evidence,
        f"{root} is in {location.lower()}, but the node is in {region}",
        advice=f"Launch in a zone of {location.lower()}, or use a bucket in {region}.",
    )
