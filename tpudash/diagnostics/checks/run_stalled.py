"""Whether a run that should train is heard of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import ago, dollars
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.run import Run

ABOUT: Final = About(
    "run-stalled",
    "Run is making progress",
    Scope.RUN,
    why="Training that hangs does not exit, so its node looks well and costs as much as before.",
    rank=20,
    source=RUNS,
    group=Group.PROGRESS,
)
QUIET: Final = timedelta(minutes=5)


def check(evidence: Evidence) -> Finding:
    """Fail for a stalled run, warn of a quiet one."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    if run.state not in {*AT_WORK, RunState.STALLED}:
        return ABOUT.not_applicable(evidence, f"it is {run.state}")
    heard = ago(run.last_heard, evidence.now)
    where = "" if run.step is None else f", at step {run.step:,}"
    if run.state is RunState.STALLED:
        return ABOUT.failed(
            evidence,
            f"its agent was last heard {heard}{where}{_waste(run, evidence)}",
            advice="Read the log's last lines and the node's health. If it hangs, delete the node "
            "and resume the run: it goes on from its newest checkpoint.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    if run.last_heard is None:
        return ABOUT.unknown(evidence, f"{run.state}, but its agent was never heard")
    if evidence.now - run.last_heard > QUIET:
        return ABOUT.warned(
            evidence,
            f"{run.state}, but its agent was last heard {heard}{where}",
            advice="It may hang. Read the log's last lines.",
            action="pane-logs",
            command=f"tpudash logs {run.name}",
        )
    return ABOUT.passed(evidence, f"its agent was heard {heard}{where}")


def _waste(run: Run, evidence: Evidence) -> str:
    rates = [evidence.rate_of(node) for node in evidence.nodes_of_run() if node.is_billing]
    if run.last_heard is None or not rates:
        return ""
    hours = (evidence.now - run.last_heard).total_seconds() / 3600
    known = [rate for rate in rates if rate is not None]
    if not known:
        return ", at an unknown rate"
    cost = dollars(sum(known) * hours, at_least=len(known) < len(rates))
    return f", which has cost {cost} since"
