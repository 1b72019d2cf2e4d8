"""What a run has cost by its records and its nodes: an estimate that errs on the dear side.

Charges run while a node is READY; here a node counts from its creation, so that a cap is met early
rather than late. Source: https://cloud.google.com/tpu/pricing
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.node import Node, NodeState

if TYPE_CHECKING:
    from tpudash.domain.run import AttemptRecord
    from tpudash.domain.run_state import RunEvidence
    from tpudash.operations.desk import Rate

_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run has cost.

    Attributes:
        usd: None where no price is known.
        per_hour_usd: What a node of it costs an hour, or None.
        is_running: Whether a node of it is charged for now, or soon will be.
    """

    usd: float | None
    per_hour_usd: float | None
    is_running: bool


def spending_of(evidence: RunEvidence, rate: Rate, now: datetime) -> Spending:
    """Add up all attempts of a run."""
    spec = evidence.spec
    if spec is None:
        return Spending(None, None, is_running=False)
    rates = [rate(spec.accelerator_type, zone, spec.scheduling) for zone in spec.zones]
    per_hour = max((one for one in rates if one is not None), default=spec.cost_per_hour_usd)
    live = [node for node in evidence.nodes if _is_charged(node)]
    if per_hour is None:
        return Spending(None, None, is_running=bool(live))
    total = 0.0
    records = {record.attempt: record for record in evidence.attempts}
    nodes = {node.attempt or 1: node for node in evidence.nodes}
    for attempt in records.keys() | nodes.keys():
        record, node = records.get(attempt), nodes.get(attempt)
        own = record.cost_per_hour_usd if record and record.cost_per_hour_usd else per_hour
        total += own * (_lifetime(record, node, now) / _HOUR)
    return Spending(total, per_hour, is_running=bool(live))


def _lifetime(record: AttemptRecord | None, node: Node | None, now: datetime) -> timedelta:
    begins = [record.started] if record is not None else []
    if node is not None and node.create_time is not None:
        begins.append(node.create_time)
    if not begins:
        return timedelta()
    if node is not None and _is_charged(node):
        end = now
    elif record is not None:
        end = max(record.ended or record.updated, record.updated)
    else:
        # It was never heard of, and when it went is not known.
        return timedelta()
    return max(timedelta(), end - min(begins))


def _is_charged(node: Node) -> bool:
    return not node.is_dead and node.state != NodeState.DELETING
