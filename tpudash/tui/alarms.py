"""What is wrong now, as alarms that stay for as long as it is so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tpudash.domain.finding import Verdict
from tpudash.domain.node import NodeHealth
from tpudash.domain.run import RunState
from tpudash.store.snapshot import NODES, SourceState
from tpudash.tui.troubles import is_old_status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tpudash.store.snapshot import Snapshot

_BAD_RUNS: Final = frozenset({RunState.FAILED, RunState.PREEMPTED, RunState.STALLED})
_GOOD_HEALTH: Final = frozenset({None, "", NodeHealth.HEALTHY, NodeHealth.HEALTH_UNSPECIFIED})


class Alarm(NamedTuple):
    """One thing that is wrong.

    Attributes:
        key: Tells whether it is still the same alarm.
        state: The word whose glyph and colour it has.
        text: What is wrong, in a sentence; from outside.
        since: When it was first seen.
    """

    key: str
    state: str
    text: str
    since: datetime


def is_old(snapshot: Snapshot, now: datetime) -> bool:
    """Whether the nodes' data is older than it should ever be."""
    return is_old_status(snapshot.sources[NODES], now)


class AlarmBook:
    """Remembers since when each alarm is on."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def look(self, snapshot: Snapshot, now: datetime) -> list[Alarm]:
        """Return the alarms that are on, the newest first."""
        found = dict(_found(snapshot, now))
        self._since = {key: self._since.get(key, now) for key in found}
        alarms = [Alarm(key, *words, self._since[key]) for key, words in found.items()]
        return sorted(alarms, key=lambda alarm: alarm.since, reverse=True)


def _found(snapshot: Snapshot, now: datetime) -> Iterator[tuple[str, tuple[str, str]]]:
    yield from _about_sources(snapshot, now)
    for run in snapshot.runs.values():
        if run.state in _BAD_RUNS:
            yield f"run {run.name} {run.state}", (run.state, f"{run.name}: {run.reason}")
    for node in snapshot.nodes.values():
        if node.health not in _GOOD_HEALTH:
            words = f"{node.node_id}: {node.health} {node.health_description}".rstrip()
            yield f"node {node.name} {node.health}", (str(node.health), words)
    for finding in snapshot.findings:
        if finding.verdict is Verdict.FAIL:
            words = f"{finding.subject}: {finding.title}. {finding.evidence}"
            yield f"check {finding.check_id} {finding.subject}", ("FAILED", words)


def _about_sources(snapshot: Snapshot, now: datetime) -> Iterator[tuple[str, tuple[str, str]]]:
    if is_old(snapshot, now):
        yield "old", ("TERMINATED", "What is shown is old: no answer about the nodes.")
    for name, status in snapshot.sources.items():
        if status.state is SourceState.FAILING:
            yield f"source {name}", ("TERMINATED", f"No answer about {name}: {status.title}")
    for zone in snapshot.unreachable:
        yield f"zone {zone}", ("REPAIRING", f"Zone {zone} does not answer.")
