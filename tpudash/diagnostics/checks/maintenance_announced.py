"""Whether Google has announced maintenance of a node's host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import span
from tpudash.domain.probe import ProbeKey, ProbeKind

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.node import Maintenance, Node


def _probe(evidence: Evidence) -> ProbeKey | None:
    node = evidence.node
    return ProbeKey(ProbeKind.MAINTENANCE) if node is not None and node.is_billing else None


ABOUT: Final = About(
    "maintenance-announced",
    "No maintenance is coming",
    Scope.NODE,
    why="In its window the host is moved or restarted, and what was not saved by then is lost.",
    rank=42,
    group=Group.PREEMPTED,
    probe=_probe,
)
ONGOING: Final = "ONGOING"


def check(evidence: Evidence) -> Finding:
    """Warn of maintenance that is under way or announced, with its window.

    Source: https://cloud.google.com/tpu/docs/maintenance-events
    """
    node = evidence.node
    if node is None or not node.is_billing:
        return ABOUT.not_applicable(evidence, f"it is {node.state}" if node else "no node")
    answer = ABOUT.answer(evidence)
    all_known = answer.value if answer and isinstance(answer.value, dict) else {}
    announced = node.maintenance or all_known.get(node.name)
    if announced is not None:
        return _announced(node, announced, evidence)
    if answer is None or not isinstance(answer.value, dict):
        command = f"gcloud alpha compute tpus tpu-vm describe {node.node_id} --zone={node.zone}"
        return ABOUT.unanswered(evidence, command=command)
    return ABOUT.passed(evidence, "none is announced")


def _announced(node: Node, announced: Maintenance, evidence: Evidence) -> Finding:
    kind = announced.kind or "unnamed"
    if announced.status == ONGOING:
        return ABOUT.warned(
            evidence,
            f"{kind} maintenance is under way{_until(announced, evidence.now)}",
            advice="Wait until the node is READY and HEALTHY again, then see that the trainer "
            "runs; its external address may have changed.",
            action="pane-logs",
        )
    return ABOUT.warned(
        evidence,
        f"{kind} maintenance is announced{_begins(announced, evidence.now)}",
        advice="Have a checkpoint at least every hour until then"
        + (", or have it done at a time of your own." if announced.can_reschedule else "."),
        command=(
            f"gcloud alpha compute tpus tpu-vm perform-maintenance {node.node_id} "
            f"--zone={node.zone}"
        )
        if announced.can_reschedule
        else None,
    )


def _begins(announced: Maintenance, now: datetime) -> str:
    start = announced.window_start
    if start is None:
        return " at a time that is not told"
    when = f"in {span(start - now)}" if start > now else "since now"
    latest = announced.latest_start
    at_last = f", at the latest {latest:%Y-%m-%d %H:%M} UTC" if latest else ""
    return f" for {start:%Y-%m-%d %H:%M} UTC ({when}){at_last}"


def _until(announced: Maintenance, now: datetime) -> str:
    end = announced.window_end
    return f", for {span(end - now)} more" if end is not None and end > now else ""
