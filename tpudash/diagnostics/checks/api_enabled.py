"""Whether the Cloud TPU API is switched on for the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.classifier import classify_text
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import NODES, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "api-enabled",
    "Cloud TPU API is enabled",
    Scope.PROJECT,
    why="Without it every call is refused, in words that look like a missing right.",
    rank=1,
    group=Group.CREATION,
)


def check(evidence: Evidence) -> Finding:
    """Judge by the listing of nodes, which needs the API and little else."""
    status = evidence.snapshot.sources.get(NODES)
    if status is None or status.state is SourceState.WAITING:
        return ABOUT.unknown(evidence, "the nodes were not listed yet")
    if status.state is SourceState.OK:
        return ABOUT.passed(evidence, "it answers")
    words = f"{status.title}: {status.detail}"
    if any(one.error_class is ErrorClass.API_OFF for one in classify_text(words)):
        project = (
            evidence.snapshot.connection.project if evidence.snapshot.connection else "PROJECT"
        )
        return ABOUT.failed(
            evidence,
            status.detail or status.title,
            advice="Switch it on; it takes a minute or two until it answers.",
            command=f"gcloud services enable tpu.googleapis.com --project={project}",
        )
    return ABOUT.unknown(evidence, f"the nodes could not be listed: {status.title}")
