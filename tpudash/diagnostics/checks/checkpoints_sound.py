"""Whether all checkpoints of a run could be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "checkpoints-sound",
    "Checkpoints are whole",
    Scope.RUN,
    why="A damaged checkpoint costs the steps back to the one before.",
    rank=40,
    source=RUNS,
    group=Group.PREEMPTED,
)


def check(evidence: Evidence) -> Finding:
    """Warn of checkpoints that an attempt set aside."""
    run = evidence.run
    if run is None or not run.attempts:
        return ABOUT.not_applicable(evidence, "no attempt has begun")
    damaged = sorted({name for record in run.attempts for name in record.quarantined})
    if damaged:
        where = f" in {run.spec.run_url}/quarantine" if run.spec else ""
        return ABOUT.warned(
            evidence,
            f"set aside as damaged: {', '.join(damaged)}",
            advice=f"The run went on from the newest that is whole. They are kept{where}; mostly "
            "a node died while it saved.",
        )
    if run.checkpoint_step is None:
        return ABOUT.not_applicable(evidence, "there is no checkpoint yet")
    return ABOUT.passed(evidence, f"none was set aside; the newest is step {run.checkpoint_step:,}")
