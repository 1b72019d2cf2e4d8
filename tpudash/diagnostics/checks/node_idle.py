"""Whether a node is still paid for although its run is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import dollars, rate, span
from tpudash.domain.run import RunState

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.node import Node
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "node-idle",
    "Node is in use",
    Scope.NODE,
    why="A READY node costs the same whether it trains or not; deleting it keeps checkpoints.",
    rank=31,
    group=Group.COSTS,
)
OVER: Final = frozenset({RunState.FINISHED, RunState.FAILED, RunState.DELETED})


def check(evidence: Evidence) -> Finding:
    """Warn of a READY node whose run is over, or went on elsewhere."""
    node, run = evidence.node, evidence.run
    if node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, "it is not paid for now")
    if run is None:
        return ABOUT.not_applicable(evidence, "what runs on it can't be seen from here")
    moved_on = any(
        node.attempt is not None and record.attempt > node.attempt for record in run.attempts
    )
    if run.state not in OVER and not moved_on:
        return ABOUT.passed(evidence, f"its run {run.name} is {run.state}")
    since = _idle_since(node, run)
    if since is not None and evidence.now - since < evidence.limits.idle_for:
        return ABOUT.not_applicable(evidence, f"its run {run.name} has just ended")
    return _idle(node, run, since, evidence)


def _idle(node: Node, run: Run, since: datetime | None, evidence: Evidence) -> Finding:
    price = evidence.rate_of(node)
    now = f"{rate(price)} now"
    if since is not None and price is not None:
        hours = (evidence.now - since).total_seconds() / 3600
        now = f"{span(evidence.now - since)} idle, {dollars(price * hours)} wasted, {now}"
    state = f"is {run.state}" if run.state in OVER else "went on on another node"
    return ABOUT.warned(
        evidence,
        f"READY, but its run {run.name} {state}: {now}",
        advice="Delete the node; checkpoints, results and logs are kept.",
        action="delete",
        command=f"tpudash delete {node.node_id}",
    )


def _idle_since(node: Node, run: Run) -> datetime | None:
    record = next((one for one in run.attempts if one.attempt == node.attempt), None)
    ended = record.ended if record else None
    return ended or (run.result.finished if run.result else None) or run.last_heard
