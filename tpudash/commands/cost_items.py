"""The rows of `tpudash cost`: nodes, runs, owners, and everything together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpudash.commands.items import cost_fields, price_item, rounded
from tpudash.cost.cap import cap_of
from tpudash.cost.estimate import combine
from tpudash.cost.report import (
    Amount,
    cost_between,
    cost_by_owner,
    start_of_day,
    start_of_month,
    total_waste,
    waste_of,
)
from tpudash.cost.run_money import money_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudash.commands.facts import Facts
    from tpudash.commands.output import Item
    from tpudash.cost.lives import Life
    from tpudash.cost.report import Waste
    from tpudash.domain.run import Run


def cost_items(facts: Facts) -> list[Item]:
    """Return every row: nodes that are listed, runs, owners, and the total."""
    lives = facts.all_lives
    return [
        *(_node_row(facts, life) for life in lives if life.is_listed),
        *(
            _run_row(facts, run, [one for one in lives if one.run == run.name])
            for run in facts.runs
        ),
        *_owner_rows(facts, lives),
        _total_row(facts, lives),
    ]


def _row(facts: Facts, kind: str, name: str | None, lives: Sequence[Life]) -> Item:
    """Return what all rows have."""
    now = facts.as_of
    today = cost_between(lives, start_of_day(now), now)
    month = cost_between(lives, start_of_month(now), now)
    return {
        "kind": kind,
        "name": name,
        "run": None,
        "owner": None,
        "state": None,
        "accelerator_type": None,
        "scheduling": None,
        **cost_fields(combine(life.estimate for life in lives)),
        "cost_today_usd": rounded(today.usd),
        "cost_today_is_lower_bound": today.is_lower_bound,
        "cost_month_usd": rounded(month.usd),
        "cost_month_is_lower_bound": month.is_lower_bound,
        "wasted_usd": None,
        "price": None,
    }


def _node_row(facts: Facts, life: Life) -> Item:
    node = life.node
    return {
        **_row(facts, "node", life.name, [life]),
        "run": life.run,
        "owner": life.owner,
        "state": node.state if node else None,
        "accelerator_type": life.accelerator_type or None,
        "scheduling": str(life.scheduling) if life.scheduling else None,
        "price": price_item(life.price),
    }


def _run_row(facts: Facts, run: Run, lives: Sequence[Life]) -> Item:
    spec, money = run.spec, money_of(run, lives, facts.prices, facts.as_of)
    projection, cap = money.projection, cap_of(run, money.cost)
    per_1000, other = money.per_1000_steps or Amount(None), money.comparison
    return {
        **_row(facts, "run", run.name, lives),
        "run": run.name,
        "owner": run.owner or None,
        "state": str(run.state),
        "accelerator_type": spec.accelerator_type if spec else None,
        "scheduling": str(spec.scheduling) if spec else None,
        "wasted_usd": _waste_item(money.waste),
        "projected_total_usd": rounded(projection.total_usd) if projection else None,
        "projected_is_lower_bound": projection.is_lower_bound if projection else None,
        "projected_remaining_s": projection.remaining.total_seconds() if projection else None,
        "usd_per_1000_steps": rounded(per_1000.usd),
        "usd_per_1000_steps_is_lower_bound": per_1000.is_lower_bound,
        "on_demand_usd": rounded(other.on_demand_usd) if other else None,
        "spot_usd": rounded(other.spot_usd) if other else None,
        "spot_is_lower_bound": other.spot_is_lower_bound if other else None,
        "preemptions": other.preemptions if other else None,
        "max_cost_usd": cap.cap_usd if cap else None,
        "max_cost_share": rounded(cap.share) if cap else None,
        "price": price_item(money.cost.price),
    }


def _owner_rows(facts: Facts, lives: Sequence[Life]) -> list[Item]:
    return [
        {
            **_row(facts, "owner", owner, [life for life in lives if life.owner == owner]),
            "owner": owner,
        }
        for owner in cost_by_owner(lives)
    ]


def _total_row(facts: Facts, lives: Sequence[Life]) -> Item:
    wastes = [
        waste_of(run, [life for life in lives if life.run == run.name], facts.as_of)
        for run in facts.runs
    ]
    wastes.append(waste_of(None, [life for life in lives if life.run is None], facts.as_of))
    return {
        **_row(facts, "total", facts.project, lives),
        "wasted_usd": _waste_item(*wastes),
    }


def _waste_item(*wastes: Waste) -> Item:
    waste = total_waste(wastes)
    return {
        "idle": rounded(waste.idle_usd),
        "steps_lost": rounded(waste.lost_usd),
        "failed_attempts": rounded(waste.failed_usd),
        "total": rounded(waste.total_usd),
        "is_lower_bound": waste.is_lower_bound,
    }
