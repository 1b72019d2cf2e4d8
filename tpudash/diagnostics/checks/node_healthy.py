"""Whether a node is READY and healthy, by its state, its health and its symptoms."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import span
from tpudash.domain.node import TRANSIENT_STATES, NodeHealth, NodeState
from tpudash.store.state_times import StateTimes

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding
    from tpudash.domain.node import Node

ABOUT: Final = About(
    "node-healthy",
    "Node is READY and healthy",
    Scope.NODE,
    why="Nothing else works on a node that is not, and READY alone does not say that it works.",
    rank=10,
    group=Group.CONNECT,
)
TOO_LONG: Final = timedelta(minutes=30)
GOOD_HEALTHS: Final = frozenset({None, "", NodeHealth.HEALTHY, NodeHealth.HEALTH_UNSPECIFIED})


def check(evidence: Evidence) -> Finding:
    """Judge state, then health, then symptoms."""
    node = evidence.node
    if node is None:
        return ABOUT.not_applicable(evidence, "no node is asked about")
    if node.state == NodeState.READY:
        return _judge_ready(node, evidence)
    if node.is_dead or node.state == NodeState.STOPPED:
        return ABOUT.not_applicable(evidence, f"it is {node.state}")
    if node.state in TRANSIENT_STATES:
        return _judge_change(node, evidence)
    return ABOUT.unknown(
        evidence,
        f"its state is {node.state}, which says neither that it works nor that it does not"
        + _words(node),
        advice="Look at it in the Google Cloud console; a node whose repair failed does not "
        "come back.",
    )


def _judge_ready(node: Node, evidence: Evidence) -> Finding:
    if node.health not in GOOD_HEALTHS:
        maintained = node.health == NodeHealth.UNHEALTHY_MAINTENANCE
        judged = ABOUT.warned if maintained else ABOUT.failed
        return judged(
            evidence,
            f"READY but {node.health}{_words(node)}",
            advice="Google maintains the host; wait until it is HEALTHY again."
            if maintained
            else "Read the log for what the runtime says. If it stays so, delete the node and "
            "resume its run on a new one.",
            action="pane-logs",
            command=f"gcloud compute tpus tpu-vm describe {node.node_id} --zone={node.zone}",
        )
    if node.symptoms:
        return ABOUT.warned(
            evidence,
            f"READY, with symptoms{_words(node)}",
            advice="Read the log of the worker that is named.",
            action="pane-logs",
            command=f"tpudash logs {node.node_id}",
        )
    health = node.health or "the API gives no health"
    return ABOUT.passed(evidence, f"READY, {health}, no symptoms")


def _judge_change(node: Node, evidence: Evidence) -> Finding:
    since = _seen_since(node, evidence)
    length = evidence.now - since if since else timedelta(0)
    text = f"{node.state} for {span(length)}{_words(node)}"
    if length < TOO_LONG:
        return ABOUT.not_applicable(evidence, text)
    return ABOUT.warned(
        evidence,
        text,
        advice="That is longer than usual. It is still under way at Google, so wait or look at "
        "it in the Google Cloud console; nothing is gained by doing it again.",
    )


def _seen_since(node: Node, evidence: Evidence) -> datetime | None:
    """Return since when it is so at the latest: what nobody saw begin is not held against it."""
    state_time = StateTimes(evidence.snapshot).of(node)
    times = evidence.snapshot.times.get(node.name)
    if state_time is None or times is None:
        return node.create_time
    return times.state_since if state_time.is_earliest else state_time.since


def _words(node: Node) -> str:
    parts = [node.health_description] if node.health_description else []
    parts += [
        f"{symptom.kind} on worker {symptom.worker_id or '?'}"
        + (f" ({symptom.details})" if symptom.details else "")
        for symptom in node.symptoms
    ]
    return f": {'; '.join(parts)}" if parts else ""
