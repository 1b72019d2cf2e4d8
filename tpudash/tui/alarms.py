"""What is wrong now, as alarms that stay for as long as it is so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tpudash.cost.alarms import ALARM_CHECKS
from tpudash.domain.finding import Verdict
from tpudash.domain.node import NodeHealth
from tpudash.domain.run import RunState
from tpudash.store.snapshot import NODES, SourceState
from tpudash.tui.troubles import is_old_status
from tpudash.wording.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tpudash.domain.alarm import Alarm as MoneyAlarm
    from tpudash.store.snapshot import Snapshot
    from tpudash.tui.pane import HostApp

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


def money_alarms(snapshot: Snapshot) -> list[Alarm]:
    """Return the alarms about money that are on, the newest first, with their evidence of now."""
    if not snapshot.alarms:
        return []
    now = {
        (one.check_id, one.subject): one.evidence
        for one in snapshot.findings
        if one.verdict in {Verdict.WARN, Verdict.FAIL}
    }
    return [
        Alarm(
            f"check {one.check_id} {one.subject}",
            "ALARM",
            f"{one.place}{now.get(one.key, one.text)}",
            one.since,
        )
        for one in reversed(snapshot.alarms)
    ]


class AlarmBook:
    """Remembers since when each alarm is on."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def look(self, snapshot: Snapshot, now: datetime) -> list[Alarm]:
        """Return the alarms that are on, the newest first: of what is broken, then of money.

        The newest of each kind leads, since a low screen shows two: forty nodes without a run must
        not hide that one run has failed, nor the other way round.
        """
        found = dict(_found(snapshot, now))
        self._since = {key: self._since.get(key, now) for key in found}
        alarms = [Alarm(key, *words, self._since[key]) for key, words in found.items()]
        broken = sorted(alarms, key=lambda alarm: alarm.since, reverse=True)
        money = money_alarms(snapshot)
        return [*broken[:1], *money[:1], *broken[1:], *money[1:]]


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
        if finding.verdict is Verdict.FAIL and finding.check_id not in ALARM_CHECKS:
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


class AlarmNotices:
    """Says of each alarm about money once that it is on, and once that it is over."""

    def __init__(self, host: HostApp) -> None:
        self._host = host
        self._on: dict[tuple[str, str], MoneyAlarm] = {}

    def look(self) -> None:
        """Say what changed since the last look; several at once in one notice."""
        now_on = {one.key: one for one in self._host.context.store.snapshot.alarms}
        raised = [one for key, one in now_on.items() if key not in self._on]
        over = [one for key, one in self._on.items() if key not in now_on]
        self._on = now_on
        if raised:
            first = f"{raised[0].place}{raised[0].text}"
            more = f" (+{len(raised) - 1} more alarms)" if len(raised) > 1 else ""
            self._say(f"Alarm: {first}{more}", "warning")
        if over:
            names = ", ".join(f"{one.place}{one.title}" for one in over)
            self._say(f"Alarm over: {names}", "information")

    def _say(self, words: str, severity: Any) -> None:
        self._host.notify(safe_text(words, 400), severity=severity, markup=False, timeout=10)
