"""Whether a resumed run went on from where it was, and did not silently begin again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import AttemptRecord, Run

ABOUT: Final = About(
    "resumed-from-zero",
    "Resume went on from a checkpoint",
    Scope.RUN,
    why="A resume that begins at step 0 pays for everything again, and looks like success.",
    rank=14,
    source=RUNS,
    group=Group.PREEMPTED,
)


def check(evidence: Evidence) -> Finding:
    """Fail for a resume from 0 although there was a checkpoint; warn if there was none."""
    run, attempt = evidence.run, evidence.attempt
    if run is None or run.serves or attempt is None or attempt.attempt <= 1:
        return ABOUT.not_applicable(evidence, "it was not resumed")
    if attempt.restored_step is None:
        if run.state in {RunState.FAILED, RunState.DELETED, RunState.FINISHED}:
            return ABOUT.not_applicable(evidence, f"{attempt.node} never got to restore")
        return ABOUT.unknown(evidence, f"{attempt.node} has not said yet what it began from")
    if attempt.restored_step > 0:
        return ABOUT.passed(evidence, f"{attempt.node} went on from step {attempt.restored_step:,}")
    return _judge_start(run, attempt, evidence)


def _judge_start(run: Run, attempt: AttemptRecord, evidence: Evidence) -> Finding:
    """Judge an attempt that began at step 0 by what the attempts before it had reached."""
    earlier = [record for record in run.attempts if record.attempt < attempt.attempt]
    saved = max((record.checkpoint_step or 0 for record in earlier), default=0)
    reached = max((record.step or 0 for record in earlier), default=0)
    if saved:
        return ABOUT.failed(
            evidence,
            f"{attempt.node} began at step 0 although step {saved:,} had been saved",
            advice="Stop it before it writes over the old checkpoints, and look in the run's "
            "checkpoints/ and quarantine/ folders for step "
            f"{saved:,}; check that the run's bucket is the same.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    if reached:
        return ABOUT.warned(
            evidence,
            f"{attempt.node} began at step 0: step {reached:,} was reached, but nothing saved",
            advice="Save checkpoints more often (--checkpoint-every) than nodes are preempted.",
        )
    return ABOUT.passed(evidence, "nothing had been trained before")
