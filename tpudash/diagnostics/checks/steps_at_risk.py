"""How much work a preemption would cost now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.cost.projection import cost_of_steps, observed_speed
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import counted, dollars, span
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "steps-at-risk",
    "Checkpoints are fresh",
    Scope.RUN,
    why="What was trained since the last checkpoint is lost with the node.",
    rank=41,
    source=RUNS,
    group=Group.PREEMPTED,
)
MUCH: Final = timedelta(minutes=60)
"""Google advises a checkpoint about every hour.

Source: https://cloud.google.com/tpu/docs/maintenance-events
"""


def check(evidence: Evidence) -> Finding:
    """Warn of more than an hour of work without a checkpoint on capacity that may be taken."""
    run = evidence.run
    if run is None or run.spec is None or run.state is not RunState.TRAINING:
        return ABOUT.not_applicable(evidence, "nothing trains")
    steps = run.steps_at_risk
    if steps is None:
        return ABOUT.unknown(evidence, "its step is not known yet")
    speed = observed_speed(run)
    if not speed:
        return ABOUT.unknown(evidence, f"{counted(steps, 'step')}, at an unknown speed")
    length = timedelta(seconds=steps / speed)
    usd = cost_of_steps(run, steps, evidence.prices)
    text = f"{counted(steps, 'step')} since the last one, {span(length)} of work, {dollars(usd)}"
    if length > MUCH and run.spec.scheduling.may_be_preempted:
        return ABOUT.warned(
            evidence,
            text,
            advice="Save more often (--checkpoint-every): spot nodes live for less than an hour "
            "at times.",
        )
    return ABOUT.passed(evidence, text)
