"""Whether a budget's threshold is crossed, by our estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.cost.budgets import budget_state, describe
from tpudash.cost.estimate import project_totals
from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import dollars
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from tpudash.cost.budgets import BudgetState
    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


def _probe(evidence: Evidence) -> ProbeKey | None:  # noqa: ARG001  (always the same question)
    return ProbeKey(ProbeKind.BUDGETS)


ABOUT: Final = About(
    "budget-crossed",
    "Budgets are kept",
    Scope.PROJECT,
    why="A budget only tells, hours later; it stops nothing. What was really spent is not in its "
    "API, so this is by our estimate of TPU cost alone.",
    rank=62,
    group=Group.COSTS,
    probe=_probe,
)


def check(evidence: Evidence) -> Finding:
    """Warn of a crossed threshold, fail beyond the whole amount."""
    answer = ABOUT.answer(evidence)
    budgets = answer.value if answer else None
    if not isinstance(budgets, tuple):
        return ABOUT.unanswered(evidence, command="tpudash budget list")
    if not budgets:
        return ABOUT.not_applicable(
            evidence, "no budget covers this project; make one: tpudash budget create --amount 100"
        )
    rate = project_totals(evidence.snapshot, evidence.prices, evidence.now).per_hour_usd
    states = [budget_state(one, evidence.lives, rate, evidence.now) for one in budgets]
    crossed = [state for state in states if state.crossed]
    text = "; ".join(_describe(state) for state in (crossed or states)[:3])
    if crossed:
        beyond = any(state.share is not None and state.share >= 1 for state in crossed)
        judged = ABOUT.failed if beyond else ABOUT.warned
        return judged(
            evidence,
            text,
            advice="Delete what is idle, or raise the budget.",
            command="tpudash clean",
        )
    if all(state.share is None for state in states):
        return ABOUT.unknown(evidence, text)
    return ABOUT.passed(evidence, text)


def _describe(state: BudgetState) -> str:
    name = state.budget.display_name or state.budget.budget_id
    if state.share is None or state.budget.amount is None:
        return f"{name}: {state.why_not}"
    spent = dollars(state.spent_usd, at_least=state.is_lower_bound)
    over = f", past {describe(state.crossed)}" if state.crossed else ""
    return f"{name}: {spent} of {dollars(state.budget.amount)} estimated{over}"
