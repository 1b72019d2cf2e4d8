"""Whether the trainer could connect to its TPU."""

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
    "tpu-reached",
    "The trainer reaches the TPU",
    Scope.RUN,
    why="A restarted worker, a wrong address and a missing library all lose the connection.",
    rank=13,
    source=LOGS,
    group=Group.CONNECT,
)
CLASSES: Final = frozenset({ErrorClass.CONNECT, ErrorClass.PARTIAL_SLICE, ErrorClass.AUTH_EXPIRED})


def check(evidence: Evidence) -> Finding:
    """Fail for a cause that the log or the record names; one that was got over is a warning."""
    return judge_causes(ABOUT, evidence, CLASSES, "no lost connection is in its log")
