"""Whether a run's node was taken away, what that cost, and from where it can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.cost.projection import cost_of_steps
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import ago, counted, dollars
from tpudash.domain.run import RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "run-preempted",
    "Run has a living node",
    Scope.RUN,
    why="A preempted run makes no progress until it is resumed on a new node.",
    rank=12,
    source=RUNS,
    group=Group.PREEMPTED,
)
RUNNING_STATES: Final = frozenset({RunState.TRAINING, RunState.STALLED, RunState.PREEMPTED})


def check(evidence: Evidence) -> Finding:
    """Fail for a run whose newest node was preempted or ended and that nobody resumes yet."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state not in RUNNING_STATES:
        return ABOUT.not_applicable(evidence, f"it is {run.state}")
    node = evidence.newest_node()
    is_dead = node is not None and node.is_dead
    if run.state is not RunState.PREEMPTED and not is_dead:
        return ABOUT.passed(evidence, f"{run.state}, its node was not preempted")
    attempt = evidence.attempt
    times = evidence.snapshot.times.get(node.name) if node else None
    when = (attempt.ended if attempt else None) or (times.state_since if times else None)
    state = node.state if node is not None and is_dead else "PREEMPTED"
    name = node.node_id if node else (attempt.node if attempt else "its node")
    return ABOUT.failed(
        evidence,
        f"{name} was {state} {ago(when, evidence.now)}, {_loss(run, evidence)}",
        advice=_advice(run),
        action="resume",
        command=f"tpudash resume {run.name}",
    )


def _loss(run: Run, evidence: Evidence) -> str:
    if run.step is None:
        return "how far it had got is not known"
    if run.checkpoint_step is None:
        return f"at step {run.step:,}, and no checkpoint is known"
    lost = max(0, run.step - run.checkpoint_step)
    cost = cost_of_steps(run, lost, evidence.prices)
    price = f", about {dollars(cost)}" if lost else ""
    return (
        f"at step {run.step:,}; the newest checkpoint is step {run.checkpoint_step:,}, "
        f"so {counted(lost, 'step')} lost{price}"
    )


def _advice(run: Run) -> str:
    if run.checkpoint_step:
        return f"Resume it: a new node goes on from step {run.checkpoint_step:,}."
    return "Resume it: without a checkpoint a new node begins at step 0."
