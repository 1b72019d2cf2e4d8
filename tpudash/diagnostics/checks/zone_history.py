"""Which zones had no capacity of late, and which did, by what was tried from here and seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.diagnostics.check import About, Group, Scope
from tpudash.diagnostics.failed_operations import CREATING, failure_of_operation, failure_of_spec
from tpudash.diagnostics.words import ago, counted
from tpudash.domain.failure import ErrorClass
from tpudash.domain.probe import CreationTry, ProbeKey, ProbeKind

if TYPE_CHECKING:
    from datetime import datetime

    from tpudash.diagnostics.evidence import Evidence
    from tpudash.domain.finding import Finding


def _probe(evidence: Evidence) -> ProbeKey | None:  # noqa: ARG001  (always the same question)
    return ProbeKey(ProbeKind.CREATIONS)


ABOUT: Final = About(
    "zone-history",
    "Zones had capacity",
    Scope.PROJECT,
    why="What a zone had of late is the best sign there is of what it has now.",
    rank=34,
    group=Group.CREATION,
    probe=_probe,
)
ONE_AND_THE_SAME_S: Final = 60.0
"""A refusal that the journal, a run's record and this session tell of is one refusal."""


@dataclass
class _Zone:
    refused: int = 0
    last_refused: datetime | None = None
    last_granted: datetime | None = None

    @property
    def is_short(self) -> bool:
        """Whether the last thing that is known of it is that there was no capacity."""
        if self.last_refused is None:
            return False
        return self.last_granted is None or self.last_refused > self.last_granted


def check(evidence: Evidence) -> Finding:
    """Warn of zones whose last attempt found no capacity; what lived there is the contrast."""
    zones = _known(evidence)
    short = {name: zone for name, zone in sorted(zones.items()) if zone.is_short}
    if short:
        text = "; ".join(_told(name, zone, evidence.now) for name, zone in short.items())
        return ABOUT.warned(
            evidence, text, advice=_advice(zones, evidence), command="tpudash cost --what-if ZONE"
        )
    answer = ABOUT.answer(evidence)
    if answer is None or not isinstance(answer.value, tuple):
        return ABOUT.unanswered(evidence)
    granted = {name: zone.last_granted for name, zone in sorted(zones.items()) if zone.last_granted}
    if not granted:
        return ABOUT.not_applicable(evidence, "nothing was created from here yet")
    named = ", ".join(f"{name} {ago(when, evidence.now)}" for name, when in granted.items())
    return ABOUT.passed(evidence, f"nodes were made in {named}")


def _told(name: str, zone: _Zone, now: datetime) -> str:
    text = (
        f"{name}: {counted(zone.refused, 'attempt')} without capacity, the last "
        f"{ago(zone.last_refused, now)}"
    )
    return f"{text}, last node {ago(zone.last_granted, now)}" if zone.last_granted else text


def _advice(zones: dict[str, _Zone], evidence: Evidence) -> str:
    good = [
        (zone.last_granted, name)
        for name, zone in zones.items()
        if zone.last_granted is not None and not zone.is_short
    ]
    if not good:
        return "Name more zones, wait, or try the other scheduling."
    named = ", ".join(f"{name} ({ago(when, evidence.now)})" for when, name in sorted(good)[-3:])
    return f"Nodes were made in {named}."


def _known(evidence: Evidence) -> dict[str, _Zone]:
    """Return what is known of each zone: by the journal, this session, records, and nodes seen."""
    zones: dict[str, _Zone] = {}
    for zone, when in _refusals(evidence):
        known = zones.setdefault(zone, _Zone())
        before = known.last_refused
        if before is None or (when - before).total_seconds() > ONE_AND_THE_SAME_S:
            known.refused += 1
        known.last_refused = when
    for zone, when in _grants(evidence):
        known = zones.setdefault(zone, _Zone())
        known.last_granted = max(when, known.last_granted or when)
    return zones


def _tries(evidence: Evidence) -> tuple[CreationTry, ...]:
    answer = ABOUT.answer(evidence)
    return answer.value if answer is not None and isinstance(answer.value, tuple) else ()


def _refusals(evidence: Evidence) -> list[tuple[str, datetime]]:
    """Return zone and time of every refusal for want of capacity, the oldest first."""
    found = [
        (one.time, one.zone) for one in _tries(evidence) if one.error_class is ErrorClass.STOCKOUT
    ]
    for progress in evidence.snapshot.operations.values():
        failure = failure_of_operation(progress) if progress.kind in CREATING else None
        if failure is not None and failure.error_class is ErrorClass.STOCKOUT and failure.zone:
            found.append((progress.updated, failure.zone))
    for run in evidence.snapshot.runs.values():
        failure = failure_of_spec(run.spec)
        if run.spec and failure is not None and failure.error_class is ErrorClass.STOCKOUT:
            found.append((run.spec.attempt_started or run.spec.created, run.spec.zone))
    return [(zone, when) for when, zone in sorted(found)]


def _grants(evidence: Evidence) -> list[tuple[str, datetime]]:
    """Return where nodes are known to have been made, and when."""
    found = [(one.zone, one.time) for one in _tries(evidence) if one.error_class is None]
    found += [(life.zone, life.ready.spans[0].start) for life in evidence.lives if life.ready.spans]
    return found
