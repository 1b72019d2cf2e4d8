"""Whether every worker of a slice is heard of."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.words import ago
from tpudash.domain.run import AT_WORK, RunState
from tpudash.store.snapshot import LOGS

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "workers-heard",
    "All workers are heard",
    Scope.NODE,
    why="A slice with one dead worker is dead as a whole, while all of it is paid for.",
    rank=16,
    source=LOGS,
    group=Group.CONNECT,
)
SILENT: Final = timedelta(minutes=5)
"""Agents write their host's figures every 15 s."""


def check(evidence: Evidence) -> Finding:
    """Fail where some workers of a slice were heard of late and others were not."""
    node, run = evidence.node, evidence.run
    if node is None or not node.is_billing or len(node.workers) < 2:
        return ABOUT.not_applicable(evidence, "it has one worker" if node else "no node")
    if run is None or run.state not in {*AT_WORK, RunState.STALLED}:
        return ABOUT.not_applicable(evidence, "nothing trains on it")
    heard: dict[str, datetime] = {}
    for entry in evidence.logs:
        if entry.worker_id:
            before = heard.get(entry.worker_id, entry.timestamp)
            heard[entry.worker_id] = max(before, entry.timestamp)
    lively = {worker for worker, when in heard.items() if evidence.now - when < SILENT}
    every = {str(worker.index) for worker in node.workers}
    if not lively:
        return ABOUT.unknown(evidence, "no line of any worker is recent")
    silent = sorted(every - lively, key=int)
    if not silent:
        return ABOUT.passed(evidence, f"all {len(every)}")
    first = min(
        silent, key=lambda worker: (heard.get(worker) is not None, heard.get(worker, evidence.now))
    )
    return ABOUT.failed(
        evidence,
        f"PARTIAL_SLICE: {len(lively)} of {len(every)} workers are heard; silent: "
        f"{', '.join(silent[:8])} (worker {first} {ago(heard.get(first), evidence.now)})",
        advice="Delete the node and resume the run: a slice can't go on without a worker.",
        action="resume",
        command=f"tpudash resume {run.name}",
    )
