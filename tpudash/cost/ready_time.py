"""For how long a node was READY, by all the evidence there is: that is what is charged for.

Source: https://cloud.google.com/tpu/pricing, https://cloud.google.com/tpu/docs/preemptible
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from tpudash.domain.life import ReadySpan
from tpudash.domain.node import NodeState
from tpudash.domain.run import AttemptState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from tpudash.domain.life import NodeLife
    from tpudash.domain.node import Node
    from tpudash.domain.run import AttemptRecord
    from tpudash.store.snapshot import NodeTimes

FREE_PREEMPTION: Final = timedelta(minutes=1)
USUAL_CREATION: Final = timedelta(minutes=10)
"""A node that is first heard of later than this after its creation has a past nobody watched."""


@dataclass(frozen=True, slots=True)
class ReadyTime:
    """The time for which a node is charged.

    Attributes:
        spans: Oldest first, none of them touching another.
        is_known: False where nobody can say whether or when it was READY.
        is_free: Whether nothing is charged for it, since it was preempted at once.
        is_lower_bound: Whether it may have been READY for longer.
    """

    spans: tuple[ReadySpan, ...] = ()
    is_known: bool = True
    is_free: bool = False
    is_lower_bound: bool = False

    @property
    def hours(self) -> float:
        """Hours that are charged for, in all."""
        return 0.0 if self.is_free else sum(span.hours for span in self.spans)

    def within(self, start: datetime, end: datetime) -> float:
        """Return the hours that are charged for between two times."""
        return 0.0 if self.is_free else sum(span.within(start, end) for span in self.spans)


NEVER: Final = ReadyTime()
UNKNOWN: Final = ReadyTime(is_known=False, is_lower_bound=True)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one node's life.

    Attributes:
        node: The node as it was last listed.
        times: What this process watched of it, or None.
        attempt: The record of the attempt that ran on it, or None.
        now: Until when a READY node is charged for.
        vanished: When it was first found to be no longer listed, if that is so.
        life: What earlier sessions and other consoles of this machine saw, or None.
    """

    node: Node
    times: NodeTimes | None
    attempt: AttemptRecord | None
    now: datetime
    vanished: datetime | None = None
    life: NodeLife | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it is READY now, as far as anybody can say."""
        return self.node.is_billing and self.vanished is None


def ready_time(evidence: Evidence) -> ReadyTime:
    """Return for how long a node was READY.

    The best evidence is a change that was watched; else the start and the end that the agent wrote
    down; else the node's creation. What nobody saw makes it a lower bound.
    """
    observed = _observed(evidence)
    if not observed and _never_ready(evidence):
        return NEVER
    found = _completed(observed, evidence) if observed else _guessed(evidence)
    if found is None:
        return UNKNOWN
    spans = merged(_not_after(found, evidence.now))
    is_lower_bound = any(span.is_lower_bound for span in spans)
    is_free = not is_lower_bound and _was_free(spans, evidence)
    return ReadyTime(spans, is_free=is_free, is_lower_bound=is_lower_bound and not is_free)


def ready_time_of_attempt(
    record: AttemptRecord, now: datetime, *, may_be_preempted: bool = True
) -> ReadyTime:
    """Return for how long the node of an attempt was READY of which only the record is left.

    A node lives on after its attempt ended, so only for a preemption is the end of the one the end
    of the other.
    """
    end = min(record.ended or record.updated, now)
    was_preempted = record.state == AttemptState.PREEMPTED and record.ended is not None
    span = ReadySpan(record.started, end, ends_early=not was_preempted)
    if was_preempted and may_be_preempted and end - record.started <= FREE_PREEMPTION:
        # It was created after it was asked for, and before its agent began: if only the latter is
        # within the minute, it may be charged for all the same.
        is_sure = record.requested is not None and end - record.requested <= FREE_PREEMPTION
        return ReadyTime((span,), is_free=True, is_lower_bound=not is_sure)
    return ReadyTime((span,), is_lower_bound=not was_preempted)


def ready_time_of_life(life: NodeLife, now: datetime) -> ReadyTime:
    """Return for how long a node was READY that only this machine's history remembers."""
    spans = merged(_not_after(life.spans, now))
    if life.is_open and spans:
        last = spans[-1]
        end = max(last.end, life.gone or life.last_seen)
        spans = (*spans[:-1], replace(last, end=end, ends_early=life.gone is None))
    is_free = (
        bool(spans)
        and life.preempted is not None
        and life.scheduling.may_be_preempted
        and _is_within_first_minute(spans, life.create_time)
    )
    is_lower_bound = any(span.is_lower_bound for span in spans)
    return ReadyTime(spans, is_free=is_free, is_lower_bound=is_lower_bound and not is_free)


def merged(spans: Iterable[ReadySpan]) -> tuple[ReadySpan, ...]:
    """Join spans that overlap; of two accounts of the same time the surer one counts."""
    found: list[ReadySpan] = []
    for span in sorted(spans, key=lambda one: (one.start, one.begins_late)):
        if not found or span.start > found[-1].end:
            found.append(span)
            continue
        before = found[-1]
        if span.end > before.end:
            found[-1] = replace(before, end=span.end, ends_early=span.ends_early)
        elif span.end == before.end:
            found[-1] = replace(before, ends_early=before.ends_early and span.ends_early)
    return tuple(found)


def _not_after(spans: Iterable[ReadySpan], now: datetime) -> list[ReadySpan]:
    """Cut what a clock that is ahead put into the future."""
    return [replace(span, end=min(span.end, now)) for span in spans if span.start <= now]


def _observed(evidence: Evidence) -> list[ReadySpan]:
    """Return the spans that somebody watched, of which the last one may still go on."""
    times, life = evidence.times, evidence.life
    spans = [*_remembered(life, times), *(times.earlier if times else ())]
    if times is not None and times.ready_since is not None:
        begins_late = times.ready_since <= times.first_seen
        end = times.ready_until or evidence.vanished or evidence.now
        spans.append(ReadySpan(times.ready_since, end, begins_late=begins_late))
    return sorted(spans, key=lambda span: span.start)


def _remembered(life: NodeLife | None, times: NodeTimes | None) -> tuple[ReadySpan, ...]:
    """Return what earlier sessions saw, joined to what this one does.

    A node that was READY when they last saw it and when this session first did was so all along.
    """
    if life is None or not life.spans:
        return ()
    seen = times.ready_since if times is not None else None
    last = life.spans[-1]
    if not life.is_open or times is None or seen is None or seen <= last.end:
        return life.spans
    was_ready_all_along = seen <= times.first_seen
    joined = replace(last, end=seen) if was_ready_all_along else replace(last, ends_early=True)
    return (*life.spans[:-1], joined)


def _completed(observed: list[ReadySpan], evidence: Evidence) -> list[ReadySpan]:
    """Lay what else is known over the first start and the last end."""
    first = observed[0]
    attempt, created = evidence.attempt, evidence.node.create_time
    if first.begins_late:
        start, begins_late = _start_before(first.start, attempt, created)
        observed[0] = replace(first, start=start, begins_late=begins_late)
    elif attempt is not None and first.start - attempt.started > USUAL_CREATION:
        # It was READY before already, and then for a while not; when it ceased nobody saw.
        observed[0] = replace(first, begins_late=True)
    return _extended(observed, evidence) if evidence.is_ready else _ended(observed, evidence)


def _extended(observed: list[ReadySpan], evidence: Evidence) -> list[ReadySpan]:
    """Let the last span of a node that is READY now go on until now."""
    at = max(range(len(observed)), key=lambda place: observed[place].end)
    end = max(observed[at].end, evidence.now)
    observed[at] = replace(observed[at], end=end, ends_early=False)
    return observed


def _start_before(
    seen: datetime, attempt: AttemptRecord | None, created: datetime | None
) -> tuple[datetime, bool]:
    """Return when a node became READY that was so when it was first seen, and if that is late."""
    if attempt is not None and attempt.started <= seen:
        is_late = created is not None and attempt.started - created > USUAL_CREATION
        return attempt.started, is_late
    if created is None:
        return seen, True
    return min(created, seen), seen - created > USUAL_CREATION


def _ended(observed: list[ReadySpan], evidence: Evidence) -> list[ReadySpan]:
    """Close the last span of a node that is no longer READY."""
    at = max(range(len(observed)), key=lambda place: observed[place].end)
    last, life = observed[at], evidence.life
    if life is not None and life.is_open and last.end <= life.last_seen:
        end = _end_of_attempt(evidence.attempt)
        if end is not None and end >= last.end:
            observed[at] = replace(last, end=end, ends_early=False)
        else:
            observed[at] = replace(last, end=max(last.end, life.last_seen), ends_early=True)
    return observed


def _guessed(evidence: Evidence) -> list[ReadySpan] | None:
    """Return the span of a node that nobody watched being READY, or None."""
    start = _guessed_start(evidence)
    end = _guessed_end(evidence)
    if start is None or end is None:
        return None
    return [ReadySpan(start[0], max(start[0], end[0]), start[1], end[1])]


def _guessed_start(evidence: Evidence) -> tuple[datetime, bool] | None:
    attempt, created = evidence.attempt, evidence.node.create_time
    if attempt is not None:
        is_late = created is not None and attempt.started - created > USUAL_CREATION
        return attempt.started, is_late
    if created is None:
        return None
    first_heard = evidence.times.first_seen if evidence.times else evidence.now
    return created, first_heard - created > USUAL_CREATION


def _guessed_end(evidence: Evidence) -> tuple[datetime, bool] | None:
    if evidence.is_ready:
        return evidence.now, False
    if evidence.vanished is not None and evidence.node.is_billing:
        return evidence.vanished, False
    attempt = evidence.attempt
    if attempt is None:
        return None
    exact = _end_of_attempt(attempt)
    return (exact, False) if exact else (attempt.ended or attempt.updated, True)


def _end_of_attempt(attempt: AttemptRecord | None) -> datetime | None:
    """Return when an attempt was preempted, which is when its node ceased to be READY."""
    if attempt is None or attempt.state != AttemptState.PREEMPTED:
        return None
    return attempt.ended


def _never_ready(evidence: Evidence) -> bool:
    """Whether the node is still being created, with no sign that it was ever READY."""
    if evidence.attempt is not None or evidence.node.state != NodeState.CREATING:
        return False
    return evidence.vanished is None or evidence.times is not None


def _was_free(spans: tuple[ReadySpan, ...], evidence: Evidence) -> bool:
    """Whether the node was preempted so soon after its creation that nothing is charged."""
    if not spans or not evidence.node.scheduling.may_be_preempted or evidence.is_ready:
        return False
    if not _was_preempted(evidence):
        return False
    return _is_within_first_minute(spans, evidence.node.create_time)


def _is_within_first_minute(spans: tuple[ReadySpan, ...], created: datetime | None) -> bool:
    """Whether a node was READY only within a minute of its creation, by two clocks that may differ.

    A cloud's clock that is ahead would put the end before the creation; the length tells then.
    """
    end = spans[-1].end
    return end - (created or spans[0].start) <= FREE_PREEMPTION >= end - spans[0].start


def _was_preempted(evidence: Evidence) -> bool:
    """Whether it ended by preemption, which its state no longer says once it is being deleted."""
    times, life = evidence.times, evidence.life
    return (
        evidence.node.state == NodeState.PREEMPTED
        or (times is not None and times.preempted is not None)
        or (life is not None and life.preempted is not None)
    )
