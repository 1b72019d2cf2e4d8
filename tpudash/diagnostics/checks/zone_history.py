"""Which zones had no capacity of late, and which did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import (
    CREATING,
    failure_of_operation,
    failure_of_spec,
)
from tpudash.diagnostics.words import ago, counted
from tpudash.domain.failure import ErrorClass

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding

ABOUT: Final = About(
    "zone-history",
    "Zones had capacity",
    Scope.PROJECT,
    why="What a zone had of late is the best sign there is of what it has now.",
    rank=34,
    group=Group.CREATION,
)


def check(evidence: Evidence) -> Finding:
    """Warn of zones whose last attempt found no capacity; what lived there is the contrast."""
    refused: Counter[str] = Counter()
    last_refused: dict[str, datetime] = {}
    for progress in evidence.snapshot.operations.values():
        failure = failure_of_operation(progress) if progress.kind in CREATING else None
        if failure is not None and failure.error_class is ErrorClass.STOCKOUT and failure.zone:
            refused[failure.zone] += 1
            before = last_refused.get(failure.zone, progress.updated)
            last_refused[failure.zone] = max(before, progress.updated)
    for run in evidence.snapshot.runs.values():
        spec_failure = failure_of_spec(run.spec)
        if spec_failure and spec_failure.error_class is ErrorClass.STOCKOUT and run.spec:
            refused[run.spec.zone] = max(1, refused[run.spec.zone])
            when = run.spec.attempt_started or run.spec.created
            last_refused[run.spec.zone] = max(last_refused.get(run.spec.zone, when), when)
    granted = _granted(evidence)
    short = {
        zone: when
        for zone, when in last_refused.items()
        if when > granted.get(zone, when) or zone not in granted
    }
    if short:
        text = "; ".join(
            f"{zone}: {counted(refused[zone], 'attempt')} without capacity, the last "
            + ago(when, evidence.now)
            + (f", last node {ago(granted[zone], evidence.now)}" if zone in granted else "")
            for zone, when in sorted(short.items())
        )
        good = sorted(
            (zone for zone in granted if zone not in short), key=lambda zone: granted[zone]
        )
        advice = (
            f"Nodes were made in {', '.join(reversed(good[-3:]))} of late."
            if good
            else ("Name more zones, wait, or try the other scheduling.")
        )
        return ABOUT.warned(evidence, text, advice=advice)
    if not granted:
        return ABOUT.not_applicable(evidence, "nothing was created here yet")
    zones = ", ".join(f"{zone} {ago(when, evidence.now)}" for zone, when in sorted(granted.items()))
    return ABOUT.passed(evidence, f"nodes were made in {zones}")


def _granted(evidence: Evidence) -> dict[str, datetime]:
    """Return when the newest node of each zone became READY, as far as it is known."""
    found: dict[str, datetime] = {}
    for life in evidence.lives:
        if life.ready.spans:
            start = life.ready.spans[0].start
            found[life.zone] = max(found.get(life.zone, start), start)
    return found
