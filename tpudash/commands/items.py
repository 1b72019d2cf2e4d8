"""The items of the JSON envelopes: one function for each kind of thing.

Field names are part of the command-line interface. What is not known is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpudash.commands.output import Item, timestamp
from tpudash.domain.accelerator import load_catalog
from tpudash.domain.resource_name import ResourceName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tpudash.domain.failure import Failure
    from tpudash.domain.finding import Finding
    from tpudash.domain.log import LogEntry
    from tpudash.domain.node import Maintenance, Node
    from tpudash.domain.operation import OperationProgress, Plan
    from tpudash.domain.price import CostEstimate, Price
    from tpudash.domain.request import QueuedResource
    from tpudash.domain.run import AttemptRecord, Run, Supervision


def node_item(node: Node, cost: CostEstimate, now: datetime) -> Item:
    """Return a node as an item of `tpudash nodes --json`."""
    kind = load_catalog().find(node.accelerator_type)
    return {
        "name": node.name,
        "project": node.project,
        "zone": node.zone,
        "state": node.state,
        "health": node.health,
        "health_description": node.health_description or None,
        "accelerator_type": node.accelerator_type or None,
        "chips": kind.chips if kind else None,
        "hosts": len(node.workers) or (kind.hosts if kind else None),
        "scheduling": str(node.scheduling),
        "runtime_version": node.runtime_version or None,
        "create_time": timestamp(node.create_time),
        "age_s": age_s(node.create_time, now),
        "run": node.run,
        "owner": node.owner,
        "attempt": node.attempt,
        "queued_resource": node.queued_resource,
        "maintenance": maintenance_item(node.maintenance),
        "labels": dict(node.labels),
        "metadata_keys": sorted(node.metadata),
        "workers": [
            {"worker": worker.index, "ip_address": worker.ip_address} for worker in node.workers
        ],
        "symptoms": [
            {
                "kind": symptom.kind,
                "details": symptom.details,
                "worker": symptom.worker_id or None,
                "create_time": timestamp(symptom.create_time),
            }
            for symptom in node.symptoms
        ],
        **cost_fields(cost),
    }


def maintenance_item(maintenance: Maintenance | None) -> Item | None:
    """Return announced maintenance, or None."""
    if maintenance is None:
        return None
    return {
        "type": maintenance.kind,
        "status": maintenance.status,
        "can_reschedule": maintenance.can_reschedule,
        "window_start": timestamp(maintenance.window_start),
        "window_end": timestamp(maintenance.window_end),
        "latest_start": timestamp(maintenance.latest_start),
    }


def cost_fields(cost: CostEstimate) -> Item:
    """Return what every item says about money."""
    return {
        "cost_per_hour_usd": rounded(cost.per_hour_usd),
        "cost_accrued_usd": rounded(cost.accrued_usd),
        "cost_is_lower_bound": cost.is_lower_bound,
    }


def price_item(price: Price | None) -> Item | None:
    """Return a price with its evidence, or None."""
    if price is None:
        return None
    return {
        "per_chip_hour_usd": price.per_chip_hour_usd,
        "source": price.source,
        "as_of": price.as_of.isoformat() if price.as_of else None,
        "region": price.region,
        "scheduling": str(price.scheduling),
        "is_example": price.is_example,
        "read": timestamp(price.read),
        "before_usd": price.before_usd,
    }


def request_item(request: QueuedResource, now: datetime) -> Item:
    """Return a queued resource as an item of `tpudash requests --json`."""
    return {
        "name": request.name,
        "project": ResourceName.parse(request.name).project,
        "zone": request.zone,
        "state": request.state,
        "initiator": request.initiator,
        "failure": request.failure,
        "accelerator_type": request.accelerator_type or None,
        "nodes": list(request.node_names),
        "create_time": timestamp(request.create_time),
        "age_s": age_s(request.create_time, now),
        "labels": dict(request.labels),
    }


def run_item(run: Run, cost: CostEstimate, now: datetime) -> Item:
    """Return a run as an item of `tpudash runs --json`."""
    spec = run.spec
    return {
        "name": run.name,
        "owner": run.owner or None,
        "state": str(run.state),
        "reason": run.reason or None,
        "step": run.step,
        "target_step": run.target_step,
        "checkpoint_step": run.checkpoint_step,
        "attempts": [attempt_item(record) for record in run.attempts],
        "steps_lost": run.steps_lost,
        "steps_at_risk": run.steps_at_risk,
        "nodes": list(run.nodes),
        "final_metrics": dict(run.final_metrics) if run.final_metrics is not None else None,
        "export": run.result.export if run.result else None,
        "loss": run.loss,
        "accuracy": run.accuracy,
        "examples_per_second": run.examples_per_second,
        "last_heard": timestamp(run.last_heard),
        "last_heard_age_s": age_s(run.last_heard, now),
        "accelerator_type": spec.accelerator_type if spec else None,
        "zone": spec.zone if spec else None,
        "scheduling": str(spec.scheduling) if spec else None,
        "runtime_version": spec.runtime_version if spec else None,
        "run_url": spec.run_url if spec else None,
        "recipe": spec.recipe.name if spec else None,
        "seed": spec.seed if spec else None,
        "created": timestamp(spec.created) if spec else None,
        "queued": spec.placement.queued if spec else None,
        "supervision": supervision_item(run.supervision, now),
        **cost_fields(cost),
    }


def supervision_item(found: Supervision | None, now: datetime) -> Item | None:
    """Return who resumes a run by itself, or did last; None where nobody ever did."""
    if found is None:
        return None
    return {
        "owner": found.owner,
        "host": found.host,
        "pid": found.pid,
        "since": timestamp(found.since),
        "updated": timestamp(found.updated),
        "age_s": age_s(found.updated, now),
        "is_alive": found.is_alive(now),
        "ended": timestamp(found.ended),
        "phase": found.state,
        "message": found.message or None,
        "tries": found.tries,
        "tries_left": found.tries_left,
        "max_attempts": found.max_attempts,
        "max_cost_usd": found.max_cost_usd,
        "spent_usd": rounded(found.spent_usd),
    }


def attempt_item(record: AttemptRecord) -> Item:
    """Return one attempt of a run: its record, with times as text."""
    return {
        "attempt": record.attempt,
        "node": record.node,
        "zone": record.zone or None,
        "state": record.state,
        "stage": record.stage,
        "started": timestamp(record.started),
        "updated": timestamp(record.updated),
        "step_updated": timestamp(record.step_updated),
        "workers": record.workers,
        "workers_missing": list(record.workers_missing),
        "checks": list(record.checks),
        "ended": timestamp(record.ended),
        "exit_code": record.exit_code,
        "restarts": record.restarts,
        "restored_step": record.restored_step,
        "steps_lost": record.steps_lost,
        "step": record.step,
        "checkpoint_step": record.checkpoint_step,
        "loss": record.loss,
        "accuracy": record.accuracy,
        "examples_per_second": record.examples_per_second,
        "error": record.error,
        "quarantined": list(record.quarantined),
        "log_entries_dropped": record.log_entries_dropped,
    }


def log_item(entry: LogEntry) -> Item:
    """Return a log entry; in `--follow` each is a line of its own."""
    return {
        "timestamp": timestamp(entry.timestamp),
        "severity": str(entry.severity),
        "run": entry.run,
        "attempt": entry.attempt,
        "node": entry.node_id or None,
        "zone": entry.zone or None,
        "worker": entry.worker_id or None,
        "stream": entry.stream or None,
        "event": entry.event,
        "text": entry.text,
        "payload": dict(entry.payload) if entry.payload is not None else None,
        "insert_id": entry.insert_id or None,
    }


def finding_item(finding: Finding) -> Item:
    """Return a row of the checklist."""
    return {
        "check": finding.check_id,
        "title": finding.title,
        "verdict": str(finding.verdict),
        "subject": finding.subject,
        "evidence": finding.evidence,
        "why": finding.why or None,
        "advice": finding.advice or None,
        "action": finding.action,
        "command": finding.command,
        "as_of": timestamp(finding.as_of),
        "group": finding.group or None,
    }


def failure_item(failure: Failure | None) -> Item | None:
    """Return a classified failure, or None."""
    if failure is None:
        return None
    scope = failure.scope
    return {
        "class": str(failure.error_class),
        "evidence": failure.evidence,
        "advice": failure.advice,
        "retry": str(failure.retry),
        "eid": failure.eid,
        "scope": {
            "project": scope.project,
            "region": scope.region,
            "zone": scope.zone,
            "worker": scope.worker,
            "bucket": scope.bucket,
            "quota": scope.quota,
            "limit": scope.limit,
        },
    }


def plan_item(plan: Plan) -> Item:
    """Return a plan with every call it would make."""
    return {
        "kind": str(plan.kind),
        "run": plan.run,
        "title": plan.title,
        "steps": [
            {
                "call": step.call,
                "target": step.target,
                "request": shortened(step.request),
                "note": step.note or None,
            }
            for step in plan.steps
        ],
        "effects": list(plan.effects),
        "warnings": list(plan.warnings),
        "cost_per_hour_usd": rounded(plan.cost_per_hour_usd),
        "nodes": list(plan.nodes),
    }


def operation_item(progress: OperationProgress) -> Item:
    """Return how far an operation got."""
    return {
        "operation_id": progress.operation_id,
        "kind": str(progress.kind),
        "run": progress.run,
        "state": str(progress.state),
        "message": progress.message,
        "started": timestamp(progress.started),
        "updated": timestamp(progress.updated),
        "steps_done": progress.steps_done,
        "steps_total": progress.steps_total,
        "nodes": list(progress.nodes),
        "failure": failure_item(progress.failure),
    }


def age_s(moment: datetime | None, now: datetime) -> float | None:
    """Return seconds since a moment, never negative, or None."""
    if moment is None:
        return None
    return round(max(0.0, (now - moment).total_seconds()), 1)


def rounded(amount: float | None) -> float | None:
    """Return dollars to a millionth, below which an estimate says nothing."""
    return None if amount is None else round(amount, 6)


def shortened(request: Mapping[str, Any]) -> Any:
    """Return a request with its long texts (the startup script) cut, as JSON-like data."""
    return _shortened(request)


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 400 else f"{value[:200]}… ({len(value)} characters)"
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(inner) for inner in value]
    return value
