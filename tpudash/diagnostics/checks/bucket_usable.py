"""Whether the node can read and write the run's bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.cause_check import judge_causes
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.failure import ErrorClass
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "bucket-usable",
    "The node may use the bucket",
    Scope.RUN,
    why="The node acts as its own service account, and a slice reads no local files.",
    rank=11,
    source=LOGS,
    group=Group.PROGRESS,
)
CLASSES: Final = frozenset({ErrorClass.BUCKET_ACCESS, ErrorClass.LOCAL_PATH})


def check(evidence: Evidence) -> Finding:
    """Fail for a cause that the log or the record names; one that was got over is a warning."""
    return judge_causes(ABOUT, evidence, CLASSES, "no refusal of the bucket is in its log")
