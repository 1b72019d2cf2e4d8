"""Whether a run's node was taken away, what that cost, and from where it can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.cost.projection import cost_of_steps
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import ago, counted, dollars
from tpudash.domain.node import NodeState
from tpudash.domain.run import AT_WORK, AttemptState, RunState
from tpudash.store.snapshot import NODES, RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.node import Node
    from tpudash.domain.run import AttemptRecord, Run

ABOUT: Final = About(
    "run-preempted",
    "Run has a living node",
    Scope.RUN,
    why="A preempted run makes no progress until it is resumed on a new node.",
    rank=12,
    source=RUNS,
    group=Group.PREEMPTED,
)
RUNNING_STATES: Final = frozenset({*AT_WORK, RunState.STALLED, RunState.PREEMPTED})


def check(evidence: Evidence) -> Finding:
    """Fail for a run whose newest node was preempted or ended and that nobody resumes yet."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state not in RUNNING_STATES:
        return ABOUT.not_applicable(evidence, f"it is {run.state}")
    node = evidence.newest_node()
    if node is not None and not _is_lost(node, run, evidence.attempt):
        # The run may have been read before this node was listed; the node is the newer word.
        return ABOUT.passed(evidence, f"{node.node_id} is {node.state}")
    if node is None and run.state is not RunState.PREEMPTED:
        return ABOUT.passed(evidence, f"{run.state}, its node was not preempted")
    if node is None and _is_newer_than_listing(evidence):
        return ABOUT.unknown(evidence, "its node is newer than the last listing of nodes")
    return ABOUT.failed(
        evidence,
        f"{_what_happened(node, evidence)}, {_loss(run, evidence)}",
        advice=_advice(run),
        action="resume",
        command=f"tpudash resume {run.name}",
    )


def _is_lost(node: Node, run: Run, attempt: AttemptRecord | None) -> bool:
    """Whether a node is gone, is going, or was left by its trainer."""
    if node.is_dead or node.state == NodeState.DELETING:
        return True
    is_own = attempt is not None and attempt.node == node.node_id
    said_so = attempt is not None and attempt.state == AttemptState.PREEMPTED
    return run.state is RunState.PREEMPTED and is_own and said_so


def _is_newer_than_listing(evidence: Evidence) -> bool:
    attempt, nodes = evidence.attempt, evidence.snapshot.sources.get(NODES)
    if attempt is None or nodes is None or nodes.last_success is None or attempt.ended is not None:
        return False
    return attempt.updated > nodes.last_success


def _what_happened(node: Node | None, evidence: Evidence) -> str:
    attempt, now = evidence.attempt, evidence.now
    is_own = attempt is not None and (node is None or attempt.node == node.node_id)
    ended = attempt.ended if attempt is not None and is_own else None
    if node is None:
        if attempt is None:
            return "no node of it is listed, and no attempt of it was ever heard"
        said = "PREEMPTED" if attempt.state == AttemptState.PREEMPTED else "gone"
        return f"{attempt.node} was {said} {ago(ended or attempt.updated, now)}"
    times = evidence.snapshot.times.get(node.name)
    when = ago(ended or (times.state_since if times else None), now)
    if node.is_dead:
        return f"{node.node_id} was {node.state} {when}"
    if node.state == NodeState.DELETING:
        was = f"was PREEMPTED {when} and " if ended is not None else ""
        return f"{node.node_id} {was}is being deleted"
    return f"{node.node_id} was PREEMPTED {when}, though it is listed as {node.state} still"


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
