"""Whether a node that is paid for belongs to a run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.cost.estimate import node_cost
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import dollars, rate, span
from tpudash.store.snapshot import RUNS, SourceState

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.node import Node

ABOUT: Final = About(
    "node-without-run",
    "Node belongs to a run",
    Scope.NODE,
    why="A node that nobody remembers is paid for until somebody deletes it.",
    rank=30,
    group=Group.COSTS,
)
GRACE: Final = timedelta(minutes=10)
"""A run's record may be read a moment later than its node is listed."""


def check(evidence: Evidence) -> Finding:
    """Warn of a READY node that no run claims."""
    node = evidence.node
    if node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, "it is not paid for now")
    if node.run is not None and evidence.run is not None:
        return ABOUT.passed(evidence, f"it belongs to {node.run}")
    if node.run is not None:
        source = evidence.snapshot.sources.get(RUNS)
        if source is None or source.state is not SourceState.OK:
            return ABOUT.unknown(evidence, f"its run {node.run} could not be read")
        age = evidence.now - node.create_time if node.create_time else GRACE
        if age < GRACE:
            return ABOUT.not_applicable(evidence, f"its run {node.run} is being launched")
    return _leaked(node, evidence)


def _leaked(node: Node, evidence: Evidence) -> Finding:
    times = evidence.snapshot.times.get(node.name)
    cost = node_cost(node, times, None, evidence.prices, evidence.now)
    age = f" for {span(evidence.now - node.create_time)}" if node.create_time else ""
    claim = f"its run {node.run} has no record" if node.run else "it carries no run's label"
    return ABOUT.warned(
        evidence,
        f"READY{age}, but {claim}; {rate(cost.per_hour_usd)}, "
        f"{dollars(cost.accrued_usd, at_least=cost.is_lower_bound)} so far",
        advice="What runs on it can't be seen from here. If it is nobody's, delete it.",
        action="delete",
        command=f"tpudash delete {node.node_id}",
    )
