"""Whether a run stays within what it may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.cost.cap import cap_of
from tpudash.cost.estimate import combine
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import dollars, span
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import RUNS

if TYPE_CHECKING:
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "cost-cap",
    "Run is within its cap",
    Scope.RUN,
    why="At the cap the agent saves, stops and deletes the node by itself.",
    rank=61,
    source=RUNS,
    group=Group.COSTS,
)


def check(evidence: Evidence) -> Finding:
    """Warn when most of the cap is used, fail when all of it is."""
    run = evidence.run
    if run is None:
        return ABOUT.not_applicable(evidence, "no run is asked about")
    cost = combine(life.estimate for life in evidence.lives_of_run())
    cap = cap_of(run, cost)
    if cap is None:
        return ABOUT.not_applicable(evidence, "it has no cap")
    if cap.spent_usd is None or cap.share is None:
        return ABOUT.unknown(evidence, f"{dollars(cap.cap_usd)}, and its cost is not known")
    spent = dollars(cap.spent_usd, at_least=cost.is_lower_bound)
    lasts = f", {span(cap.lasts)} left" if cap.lasts is not None else ""
    text = f"{spent} of {dollars(cap.cap_usd)}, {cap.share:.0%}{lasts}"
    if cap.is_reached and run.state is not RunState.FINISHED:
        return ABOUT.failed(
            evidence,
            text,
            advice="It saved a checkpoint and stopped, or will now. Resume it with a higher cap to "
            "go on, and see that its node is gone.",
            action="delete",
            command=f"tpudash delete {run.name}",
        )
    if cap.is_near and run.state in {*AT_WORK, RunState.STALLED}:
        return ABOUT.warned(evidence, text, advice="Raise the cap now if it is to reach its end.")
    return ABOUT.passed(evidence, text)
