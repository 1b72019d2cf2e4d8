"""Alarms about money: each is raised once and cleared once, however often it is looked at.

What cannot be found out neither raises nor clears an alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tpudash.domain.alarm import Alarm
from tpudash.domain.finding import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.domain.finding import Finding

ALARM_CHECKS: Final = frozenset(
    {
        "burn-rate",
        "budget-crossed",
        "node-idle",
        "node-without-run",
        "dead-requests",
        "bucket-near",
        "cost-cap",
        "price-jump",
        "resumed-from-zero",
    }
)
"""Ids of the checks whose warnings and failures are alarms."""
RAISING: Final = frozenset({Verdict.WARN, Verdict.FAIL})
CLEARING: Final = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """An alarm that was raised or cleared just now."""

    alarm: Alarm
    is_on: bool

    @property
    def text(self) -> str:
        """One line for a notice or a log."""
        alarm = self.alarm
        words = alarm.text if self.is_on else f"{alarm.title} again"
        return f"{'' if self.is_on else 'over: '}{alarm.place}{words}"


class AlarmBook:
    """Which alarms are on. Takes findings that were not joined: one row for each subject."""

    def __init__(self) -> None:
        self._on: dict[tuple[str, str], Alarm] = {}

    @property
    def on(self) -> tuple[Alarm, ...]:
        """The alarms that are on, oldest first."""
        return tuple(sorted(self._on.values(), key=lambda alarm: alarm.since))

    def update(self, findings: Iterable[Finding], now: datetime) -> tuple[AlarmChange, ...]:
        """Take in a whole checklist, and return what was raised and cleared by it.

        A subject of which there is no row any more (its node is gone) is cleared.
        """
        changes: list[AlarmChange] = []
        seen: set[tuple[str, str]] = set()
        for finding in findings:
            if finding.check_id not in ALARM_CHECKS:
                continue
            key = (finding.check_id, finding.subject)
            seen.add(key)
            if finding.verdict in RAISING and key not in self._on:
                self._on[key] = _alarm(finding, now)
                changes.append(AlarmChange(self._on[key], is_on=True))
            elif finding.verdict in CLEARING and key in self._on:
                changes.append(AlarmChange(self._on.pop(key), is_on=False))
        gone = [key for key in self._on if key not in seen]
        changes += [AlarmChange(self._on.pop(key), is_on=False) for key in gone]
        return tuple(changes)


def _alarm(finding: Finding, now: datetime) -> Alarm:
    return Alarm(
        finding.check_id, finding.subject, finding.title, finding.evidence, finding.advice, now
    )
